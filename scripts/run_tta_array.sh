#!/usr/bin/env bash
#SBATCH --job-name=run_tta_array
#SBATCH --array=0-2
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-cpu=16GB
#SBATCH --time=03:00:00
#SBATCH --output=logs/run_tta_2gpu_%A_%a.out
#SBATCH --error=logs/run_tta_2gpu_%A_%a.err
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
# One dataset shared by the tasks of a job array: task i of n makes the captions with place mod n = i, all into one run
# folder, so that each clip is made once. --array=0-9 gives ten shards of two GPUs each.
#   sbatch --array=0-2 scripts/run_tta_array.sh -p tta/plgrid_musiccaps data=tta/musiccaps_captions
#   sbatch --array=1 scripts/run_tta_array.sh --shards 3 paths.run_id=job_17 …     one shard of three again
# Run directly it makes all shards one after another, or with --shard I that one.
set -uo pipefail
script=run_tta_array
usage='[-n|--shards N] [-i|--shard I] [-p|--preset NAME] [-b|--batch-size N] [key=value…]'
# sbatch runs a copy of this file elsewhere; what it shares with the others lies beside the original.
submitted=$([ -z "${SLURM_JOB_ID:-}" ] || scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=\([^ ]*\).*/\1/p' | head -n 1)
for place in "$(dirname "$(readlink -f "$0")")" "${submitted%/*}" "${SLURM_SUBMIT_DIR:-.}/scripts"; do
  [ ! -f "$place/tta_job.sh" ] || break
done
root=$(dirname "$place")
# shellcheck source=scripts/tta_job.sh
. "$place/tta_job.sh" || { echo "$script: error: scripts/tta_job.sh was not found; submit from the root of the repository." >&2; exit 1; }

shards='' shard=''
known_option() { case "$1" in -n|--shards|-i|--shard) ;; *) return 1 ;; esac }
take_option() {
  case "$2" in ''|*[!0-9]*) refuse "$1 is \`$2\`; expected a whole number." ;; esac
  case "$1" in -n|--shards) shards=$((10#$2)) ;; *) shard=$((10#$2)) ;; esac
}

read_arguments "$@"
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
  if [ -z "$shards" ]; then
    shards=$SLURM_ARRAY_TASK_COUNT
    [ "${SLURM_ARRAY_TASK_MIN:-}-${SLURM_ARRAY_TASK_MAX:-}" = "0-$((shards - 1))" ] ||
      refuse "the array is no --array=0-$((shards - 1)); say with --shards how many shards there are."
  fi
  shard=${shard:-$SLURM_ARRAY_TASK_ID}
fi
[ -n "$shards" ] || refuse "how many shards? Give --shards N, or submit with --array=0-2."
[ "$shards" -ge 1 ] || refuse "--shards is $shards; expected at least 1."
[ "${shard:-0}" -lt "$shards" ] || refuse "there is no shard $shard of $shards; they count from 0."
if [ -n "$shard" ]; then todo=("$shard"); else mapfile -t todo < <(seq 0 $((shards - 1))); fi

start_job "Running TTA generation - shard ${shard:-0-$((shards - 1))} of $shards"
worst=0
for shard in "${todo[@]}"; do
  generate "$run_id" --shard "$shard/$shards"
  [ "$worst" != 0 ] || worst=$code
  if was_stopped && [ "$code" != 0 ] || [ "$told" = INT ]; then break; fi
done
finish "$worst"

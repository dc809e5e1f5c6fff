#!/usr/bin/env bash
#SBATCH --job-name=run_all_tta_2gpu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-cpu=16GB
#SBATCH --time=05:00:00
#SBATCH --output=logs/run_tta_2gpu_%j.out
#SBATCH --error=logs/run_tta_2gpu_%j.err
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
# All five datasets of captions to audio on two GPUs, one after another; one that fails does not keep the others from
# running. Each has a run folder of its own, named after the job and the dataset.
#   sbatch scripts/run_all_tta_2gpu.sh
# Account and partition: SBATCH_ACCOUNT and SBATCH_PARTITION, or sbatch -A and -p before the script's name.
set -uo pipefail
script=run_all_tta_2gpu
usage='[-p|--preset NAME] [-b|--batch-size N] [key=value…]'
# sbatch runs a copy of this file elsewhere; what it shares with the others lies beside the original.
submitted=$([ -z "${SLURM_JOB_ID:-}" ] || scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=\([^ ]*\).*/\1/p' | head -n 1)
for place in "$(dirname "$(readlink -f "$0")")" "${submitted%/*}" "${SLURM_SUBMIT_DIR:-.}/scripts"; do
  [ ! -f "$place/tta_job.sh" ] || break
done
root=$(dirname "$place")
# shellcheck source=scripts/tta_job.sh
. "$place/tta_job.sh" || { echo "$script: error: scripts/tta_job.sh was not found; submit from the root of the repository." >&2; exit 1; }

datasets=(zero_shot_captions base_vae_captions fine_tuned_vae_captions musiccaps_captions lp_musiccaps_captions)

read_arguments "$@"
one=$(override_of data +data)
[ -z "$one" ] || refuse "data=$one chooses one dataset; this script runs all five."
[ -n "$preset$(override_of preset +preset)" ] || preset=tta/plgrid_musiccaps
start_job "Running TTA generation - all datasets"

worst=0 table=''
for place in "${!datasets[@]}"; do
  dataset=${datasets[place]}
  printf '\n%d/%d: %s\n' "$((place + 1))" "${#datasets[@]}" "$dataset"
  began=$SECONDS
  generate "${run_id}_$dataset" "data=tta/$dataset"
  seconds=$((SECONDS - began))
  if was_stopped && [ "$code" != 0 ] || [ "$told" = INT ]; then finish "$code"; fi
  result='done'
  if [ "$code" != 0 ]; then
    result="FAILED ($code)"
    complain "$dataset failed with exit code $code; the others go on."
    [ "$worst" != 0 ] || worst=$code
  fi
  table+=$(printf '%-26s %-14s %3d:%02d:%02d  %s' "$dataset" "$result" $((seconds / 3600)) $((seconds / 60 % 60)) \
    $((seconds % 60)) "${run_id}_$dataset")$'\n'
done
printf '\n%-26s %-14s %9s  %s\n%s' dataset result time 'run folder' "$table"
finish "$worst"

#!/usr/bin/env bash
#SBATCH --job-name=run_tta_2gpu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-cpu=16GB
#SBATCH --time=03:00:00
#SBATCH --output=logs/run_tta_2gpu_%j.out
#SBATCH --error=logs/run_tta_2gpu_%j.err
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
# One dataset of captions to audio on two GPUs, under sbatch or run directly; docs/slurm.md says more.
#   sbatch scripts/run_tta_2gpu.sh -p tta/plgrid_musiccaps -b 96 data=tta/musiccaps_captions
# Account and partition: SBATCH_ACCOUNT and SBATCH_PARTITION, or sbatch -A and -p before the script's name.
set -uo pipefail
script=run_tta_2gpu
usage='[-p|--preset NAME] [-b|--batch-size N] [key=value…]'
# sbatch runs a copy of this file elsewhere; what it shares with the others lies beside the original.
submitted=$([ -z "${SLURM_JOB_ID:-}" ] || scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=\([^ ]*\).*/\1/p' | head -n 1)
for place in "$(dirname "$(readlink -f "$0")")" "${submitted%/*}" "${SLURM_SUBMIT_DIR:-.}/scripts"; do
  [ ! -f "$place/tta_job.sh" ] || break
done
root=$(dirname "$place")
# shellcheck source=scripts/tta_job.sh
. "$place/tta_job.sh" || { echo "$script: error: scripts/tta_job.sh was not found; submit from the root of the repository." >&2; exit 1; }

read_arguments "$@"
start_job "Running TTA generation"
generate "$run_id"
finish "$code"

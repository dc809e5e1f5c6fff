#!/usr/bin/env bash
# The job scripts on a real SLURM (scripts/slurm-sandbox.sh), with the built program, a tiny model and two simulated
# GPUs. Run: tests/parity/slurm.sh BUILD [--install]     (--install: Debian's slurm-wlm and munge, when missing)
# About a minute. A sandbox of its own is started and stopped; one that already runs elsewhere is not touched.
set -uo pipefail
fail() { printf 'slurm: error: %s\n' "$1" >&2; exit 1; }
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 1 ] || fail "the build folder is needed: tests/parity/slurm.sh build"
build=$(cd "$1" 2>/dev/null && pwd) || fail "there is no build folder \`$1\`."
[ -x "$build/bin/tandem" ] || fail "there is no \`$build/bin/tandem\`: run make build"
export TANDEM=$build/bin/tandem TANDEM_SIMULATE_GPUS=2 OMP_NUM_THREADS=1 TANDEM_CONFIG_DIR=${TANDEM_CONFIG_DIR:-$root/configs}

work=$(mktemp -d)
chmod 755 "$work"   # munge refuses a socket nobody else could reach
export SLURM_SANDBOX=$work/slurm
trap '"$root/scripts/slurm-sandbox.sh" stop >/dev/null; rm -rf "$work"' EXIT
"$root/scripts/slurm-sandbox.sh" start ${2:+"$2"} || exit 1
eval "$("$root/scripts/slurm-sandbox.sh" env)"

mkdir -p "$work/run/logs" "$work/run/models" "$work/run/data/captions"
cd "$work/run" || exit 1
ln -s "$root/tests/models/fixtures/musicgen/tiny" models/musicgen-large
captions() {   # captions NAME ID_COLUMN TEXT_COLUMN ROWS
  { echo "$2,$3"; for i in $(seq "$4"); do printf '%s-%d,"a calm piece, number %d"\n' "${1%%_*}" "$i" "$i"; done; } \
    >"data/captions/$1.csv"
}
for name in zero_shot_captions base_vae_captions fine_tuned_vae_captions; do captions "$name" id prediction 5; done
captions musiccaps_captions ytid caption 12
captions lp_musiccaps_captions ytid caption_paraphrase 5
captions many ytid caption 300
small=(paths.model_dir=models data.subset_size=1 generation.max_new_tokens=40)
many=(-p tta/plgrid_musiccaps -b 4 data=tta/musiccaps_captions paths.model_dir=models data.subset_size=1
      data.captions_file=data/captions/many.csv generation.max_new_tokens=200)
runs=data/musicgen-large

failed=0
check() {   # check WHAT COMMAND...
  local what=$1; shift
  if "$@" >"$work/said" 2>&1; then printf '  %-70s fine\n' "$what"
  else printf '  %-70s FAILED\n' "$what"; sed 's/^/    /' "$work/said"; failed=1; fi
}
fields() { scontrol show job "$1" | grep -oE "$2=[^ ]*" | sort -u | tr '\n' ' '; }
ended() {   # waits for a job, with all its tasks; a controller that is busy gives no answer, and preempted is no end
  local states
  for _ in $(seq 600); do
    states=$(fields "$1" JobState)
    if [ -n "$states" ] && ! tr ' ' '\n' <<<"${states% }" | grep -qvxE 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT)'; then
      return
    fi
    sleep 0.2
  done
}
is() { [ "$1" = "$2" ] || { printf 'expected `%s`, seen `%s`\n' "$2" "$1"; return 1; }; }
state_is() { is "$(fields "$1" JobState)$(fields "$1" ExitCode)$(fields "$1" Restarts)" "$2"; }
has_line() { grep -qF -- "$2" "$1" || { echo "no \`$2\` in $1:"; cat "$1"; return 1; }; }
# The random codec of the tiny model has a constant offset; everything else is held to the usual limits.
right() { "$TANDEM" verify -q --max-offset 0.2 "$1"; }
clips() { is "$(find "$runs/$1/audio_samples" -name '*.wav' | wc -l)" "$2"; }
same() { diff -rq "$runs/$1/audio_samples" "$runs/$2/audio_samples"; }
wait_for_clips() { for _ in $(seq 300); do [ "$(find "$runs/$1" -name '*.wav' 2>/dev/null | wc -l)" -lt "$2" ] || return; sleep 0.05; done; }

echo 'sbatch scripts/run_all_tta_2gpu.sh'
job=$(sbatch --parsable "$root/scripts/run_all_tta_2gpu.sh" "${small[@]}"); ended "$job"
check "it completes" state_is "$job" "JobState=COMPLETED ExitCode=0:0 Restarts=0 "
for name in zero_shot_captions base_vae_captions fine_tuned_vae_captions musiccaps_captions lp_musiccaps_captions; do
  check "$name: logged" grep -qE "^$name +done " "logs/run_tta_2gpu_$job.out"
  check "$name: right" right "$runs/job_${job}_$name"
done
check "two GPUs" has_line "logs/run_tta_2gpu_$job.out" "Using GPUs: [0, 1]"
# srun says when it has to wait for the step before to let go of its GPUs.
check "no complaint in the error log" is "$(grep -vE '^srun: (Job [0-9]+ step creation temporarily disabled|Step created)' \
  "logs/run_tta_2gpu_$job.err")" ""

echo 'one of five datasets is missing'
mv data/captions/base_vae_captions.csv data/captions/away.csv
job=$(sbatch --parsable "$root/scripts/run_all_tta_2gpu.sh" "${small[@]}"); ended "$job"
check "it fails with tandem's exit code" state_is "$job" "JobState=FAILED ExitCode=4:0 Restarts=0 "
check "the others are done" is "$(grep -cE '_captions +done ' "logs/run_tta_2gpu_$job.out")" 4
check "the one is named" has_line "logs/run_tta_2gpu_$job.err" "base_vae_captions failed with exit code 4; the others go on."

echo 'sbatch scripts/run_tta_2gpu.sh -p tta/plgrid_musiccaps -b 96 data=tta/musiccaps_captions'
one=$(sbatch --parsable "$root/scripts/run_tta_2gpu.sh" -p tta/plgrid_musiccaps -b 96 data=tta/musiccaps_captions "${small[@]}")
ended "$one"
check "it completes" state_is "$one" "JobState=COMPLETED ExitCode=0:0 Restarts=0 "
check "48 clips a GPU" has_line "logs/run_tta_2gpu_$one.out" "Per-GPU batch size: 48"
check "the clips are right" right "$runs/job_$one"
job=$(sbatch --parsable "$root/scripts/run_tta_2gpu.sh" --wrong); ended "$job"
check "an unknown option is refused with 1" state_is "$job" "JobState=FAILED ExitCode=1:0 Restarts=0 "
check "and said" has_line "logs/run_tta_2gpu_$job.err" 'unknown option `--wrong`.'

echo 'sbatch --array=0-2 scripts/run_tta_array.sh'
job=$(sbatch --parsable --array=0-2 --gres=gpu:1 --cpus-per-task=4 "$root/scripts/run_tta_array.sh" \
      -p tta/plgrid_musiccaps data=tta/musiccaps_captions "${small[@]}"); ended "$job"
check "all tasks complete" state_is "$job" "JobState=COMPLETED ExitCode=0:0 Restarts=0 "
check "each makes its four clips" is "$(cat logs/run_tta_2gpu_"$job"_*.out | grep -c '4 clips: 4 made, 0 done before')" 3
check "twelve in one folder" clips "job_$job" 12
check "they are right" right "$runs/job_$job"
check "and those of one job" same "job_$job" "job_$one"

echo 'undisturbed, to compare with'
job=$(sbatch --parsable "$root/scripts/run_tta_2gpu.sh" "${many[@]}" paths.run_id=undisturbed); ended "$job"
check "it completes" state_is "$job" "JobState=COMPLETED ExitCode=0:0 Restarts=0 "

stopped_and_resumed() {   # WHAT JOB: all of it, once it has ended
  ended "$2"
  check "$1: it completes after one restart" state_is "$2" "JobState=COMPLETED ExitCode=0:0 Restarts=1 "
  check "the second start goes on" grep -qE ' [1-9][0-9]* done before, 0 failed' "logs/run_tta_2gpu_$2.out"
  check "the clips are right" right "$runs/job_$2"
  check "and those of the undisturbed run" same "job_$2" undisturbed
}
echo 'scancel --signal=USR1'
job=$(sbatch --parsable "$root/scripts/run_tta_2gpu.sh" "${many[@]}"); wait_for_clips "job_$job" 20
scancel --signal=USR1 "$job"; stopped_and_resumed USR1 "$job"
echo 'preempted'
job=$(sbatch --parsable "$root/scripts/run_tta_2gpu.sh" "${many[@]}"); wait_for_clips "job_$job" 20
sbatch --parsable -p urgent --gres=gpu:2 -o /dev/null --wrap "sleep 1" >/dev/null; stopped_and_resumed preempted "$job"
echo 'scancel'
job=$(sbatch --parsable "$root/scripts/run_tta_2gpu.sh" "${many[@]}"); wait_for_clips "job_$job" 20
scancel "$job"; sleep 2; ended "$job"
check "it stays cancelled" is "$(fields "$job" JobState)$(fields "$job" Restarts)" "JobState=CANCELLED Restarts=0 "
check "verify says it has not ended, and nothing else" is "$(right "$runs/job_$job" | grep -E '^wrong|is wrong$'; echo "${PIPESTATUS[0]}")" \
  $'file            fault       what is wrong\nwrong: 1 unfinished\n3'

[ "$failed" = 0 ] || fail "see above."
echo "slurm: all fine"

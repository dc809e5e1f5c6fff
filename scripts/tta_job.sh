# shellcheck shell=bash disable=SC2034,SC2154
# What run_tta_2gpu.sh, run_all_tta_2gpu.sh and run_tta_array.sh share; sourced by them, after they have set `root`.
# Under sbatch the work is one srun step, which gets its own signals; elsewhere it is a child of the script.
#
# Exit codes of a dataset are those of `tandem generate`. 143 means told to stop with everything made so far kept: under
# SLURM the job then puts itself back into the queue and the next start goes on, in the same run folder.

preset='' batch_size='' overrides=() child='' told='' logs_open=''

complain() { printf '%s: error: %s\n' "$script" "$1" >&2; [ -z "${2:-}" ] || printf '%s: %s\n' "$script" "$2" >&2; }
refuse() { complain "$1" "Use: scripts/$script.sh $usage"; exit 1; }

under_slurm() { [ -n "${SLURM_JOB_ID:-}" ] && command -v srun >/dev/null; }
# sbatch runs a copy of the script under this name, with its output already in the log files.
in_batch() { [ "${0##*/}" = slurm_script ]; }

# Takes -p, -b and overrides; options of one script alone are handed to `take_option NAME VALUE`, which says no by 1.
read_arguments() {
  local value
  while [ $# -gt 0 ]; do
    case "$1" in
      -h|--help) printf 'Use: scripts/%s.sh %s\n' "$script" "$usage"; exit 0 ;;
      --?*=*) value=${1#*=}; set -- "${1%%=*}" "$value" "${@:2}"; continue ;;
      -*)
        case "$1" in
          -p|--preset|-b|--batch-size) ;;
          *) known_option "$1" || refuse "unknown option \`$1\`." ;;
        esac
        [ $# -gt 1 ] || refuse "$1 needs a value."
        case "$1" in
          -p|--preset) preset=$2 ;;
          -b|--batch-size) batch_size=$2 ;;
          *) take_option "$1" "$2" ;;
        esac
        shift 2 ;;
      *=*|~*) overrides+=("$1"); shift ;;
      *) refuse "\`$1\` is neither an option nor key=value." ;;
    esac
  done
  case "$batch_size" in
    ''|auto) ;;
    *[!0-9]*|0*) refuse "the batch size is \`$batch_size\`; expected a whole number above 0, or auto." ;;
  esac
}
known_option() { return 1; }
take_option() { return 1; }

override_of() {   # override_of NAME...: the value given last for one of these keys
  local name word found=''
  for word in ${overrides[@]+"${overrides[@]}"}; do
    for name; do [ "${word%%=*}" != "$name" ] || found=${word#*=}; done
  done
  printf '%s' "$found"
}

find_tandem() {
  local place
  if [ -n "${TANDEM:-}" ]; then
    tandem=$(command -v "$TANDEM") || { complain "TANDEM is \`$TANDEM\`, which is no program."; exit 1; }
    return
  fi
  for place in "$root/dist/tandem" "$root/build/bin/tandem"; do
    [ ! -x "$place" ] || { tandem=$place; return; }
  done
  tandem=$(command -v tandem) || { complain "no tandem was found." "Run \`make build\`, or set TANDEM to the program."; exit 1; }
}

# `job` names run folders: the same after a requeue, one for all tasks of an array. `log_job` is what SLURM calls this
# task; SLURM_JOB_ID may be the number of the whole array.
name_job() {
  if [ -n "${SLURM_ARRAY_JOB_ID:-}" ]; then job=$SLURM_ARRAY_JOB_ID log_job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
  elif [ -n "${SLURM_JOB_ID:-}" ]; then job=$SLURM_JOB_ID log_job=$SLURM_JOB_ID
  else job=$(date +%Y%m%d-%H%M%S)-$$ log_job=$job; fi
  run_id=$(override_of paths.run_id run_id +paths.run_id)
  run_id=${run_id:-job_$job}
}

# Run directly, everything printed goes to the terminal and to the files sbatch would write.
open_logs() {
  in_batch && return
  mkdir -p logs || { complain "the folder \`logs\` cannot be made here, in $PWD."; exit 1; }
  local log=logs/run_tta_2gpu_$log_job
  exec 3>&1 4>&2
  exec > >(exec tee -i -a "$log.out" >&3 2>&4); out_copier=$!
  exec 2> >(exec tee -i -a "$log.err" >&4); err_copier=$!
  logs_open=yes
}
close_logs() {
  [ -n "$logs_open" ] || return 0
  exec 1>&3 2>&4 3>&- 4>&-
  wait "$out_copier" "$err_copier" 2>/dev/null
  return 0
}

start_job() {   # once the arguments are read
  [ -z "${SLURM_SUBMIT_DIR:-}" ] || ! in_batch || cd "$SLURM_SUBMIT_DIR" || exit 1
  find_tandem
  name_job
  open_logs
  trap close_logs EXIT
  trap 'stop_child USR1' USR1
  trap 'stop_child TERM' TERM
  trap 'stop_child INT' INT
  printf '==========================================\n%s\nJob: %s on %s%s\nGPUs: %s\nBatch size: %s\nPreset: %s\nProgram: %s\n==========================================\n' \
    "$1" "$log_job" "${SLURMD_NODENAME:-$(hostname)}" "${SLURM_RESTART_COUNT:+, restart $SLURM_RESTART_COUNT}" \
    "${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-all}}" "${batch_size:-64}" "${preset:-none}" "$tandem"
}

# srun turns a TERM into the sudden end of its step; USR1 it hands on, and tandem takes it for the same wish.
stop_child() {
  told=$1
  [ -n "$child" ] || return 0
  local signal=$1
  ! under_slurm || signal=USR1
  kill -s "$signal" "$child" 2>/dev/null || true
}

generate() {   # generate RUN_ID WORDS...: one call of tandem; sets `code`
  local id=$1 command=("$tandem" generate) word again
  shift
  [ -z "$preset" ] || command+=(--preset "$preset")
  if [ -n "$batch_size" ]; then command+=("generation.batch_size=$batch_size")
  elif [ -z "$(override_of generation.batch_size batch_size data.batch_size)" ]; then command+=(generation.batch_size=64); fi
  for word in ${overrides[@]+"${overrides[@]}"}; do
    case "$word" in paths.run_id=*|run_id=*|+paths.run_id=*) ;; *) command+=("$word") ;; esac
  done
  command+=("paths.run_id=$id" "$@")
  printf '$ '; printf '%q ' "${command[@]}"; printf '\n'
  if under_slurm; then command=(srun --ntasks=1 ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} "${command[@]}"); fi
  # A process group of its own: Ctrl-C then reaches it once, through the trap.
  set -m
  "${command[@]}" </dev/null & child=$!
  set +m
  while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done
  # A signal may have ended the wait in the moment the child ended.
  wait "$child" 2>/dev/null; again=$?
  [ "$again" = 127 ] || code=$again
  child=''
}

# Told to stop and everything kept (143), or before tandem was there to hear it (128 + USR1 or TERM).
was_stopped() { [ "$code" = 143 ] || [ "$code" = 138 ] || [ "$told" = USR1 ] || [ "$told" = TERM ]; }
job_state() { scontrol show job "$log_job" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | head -n 1; }

# Ends the script. A job that was asked to stop goes back into the queue. One that SLURM itself is ending is left alone:
# its user cancelled it, or it was preempted and SLURM puts it back.
finish() {
  code=$1
  if [ "$code" != 0 ] && was_stopped && [ -n "${SLURM_JOB_ID:-}" ] && [ "$told" != INT ]; then
    local state restarts=${SLURM_RESTART_COUNT:-0} most=${TANDEM_MAX_REQUEUES:-100}
    state=$(job_state)
    if [ "$state" != RUNNING ]; then
      echo "$script: SLURM ends job $log_job (${state:-unknown}); what is done is kept in run folder $run_id."
    elif [ "$restarts" -ge "$most" ]; then
      complain "job $log_job was requeued $restarts times already (TANDEM_MAX_REQUEUES)."
    elif scontrol requeue "$log_job"; then
      echo "$script: job $log_job was stopped and goes back into the queue."
    else
      complain "job $log_job could not be requeued."
    fi
  fi
  exit "$code"
}

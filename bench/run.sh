#!/usr/bin/env bash
# Races `tandem train --stage bytes` on the CPU against the same model in PyTorch, eager mode: same batch,
# same steps, same number of threads, turn about; the median of the rounds counts.
#
# Then `tandem bench data` on the demo corpus, beside its peer where scripts/references.sh has installed it.
#
#   bench/run.sh BUILD
#
# Variables: SIZES (default "tiny small"; "" for none), BATCH (16), STEPS (60), ROUNDS (3), THREADS (all cores),
# SECONDS_EACH (5, of the data), OUT (a folder: figures of the data as JSON, for `tandem bench --compare`).
set -euo pipefail

fail() { printf 'bench: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'bench: %s\n' "$2" >&2; exit 1; }

root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -eq 1 ] || fail "one argument is needed: the build folder." "Use: bench/run.sh build"
[ -x "$1/bin/tandem" ] || fail "there is no \`$1/bin/tandem\`." "Run: make bench"
tandem=$(cd "$1/bin" && pwd)/tandem
python=$("$root/scripts/setup.sh" --prefix)/bin/python
[ -x "$python" ] || fail "no environment with torch." "Run: make setup"

sizes=${SIZES-tiny small} batch=${BATCH:-16} steps=${STEPS:-60} rounds=${ROUNDS:-3}
threads=${THREADS:-$(nproc)}
text=$root/LICENSE
load=$(cut -d' ' -f1 /proc/loadavg)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# torch warns that numpy is missing; nothing here uses it.
export OMP_NUM_THREADS=$threads PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore CUDA_VISIBLE_DEVICES=
export TANDEM_CONFIG_DIR=${TANDEM_CONFIG_DIR:-$root/configs}

# Medians leave out the first steps, which warm up caches and allocators.
median() { "$python" -c '
import json, statistics, sys
rates = [rate for rate in json.load(sys.stdin)][5:]
print(f"{statistics.median(rates):.0f}")'; }

ours() {
  rm -rf "$work/run"
  "$tandem" train -q --stage bytes --train-data "$text" --model-size "$1" --batch-size "$batch" \
    --max-steps "$steps" --checkpoint-dir "$work/run" "training.val_step=$steps" "training.save_step=$steps"
  "$python" -c '
import json, sys
lines = map(json.loads, open(sys.argv[1]))
print(json.dumps([line["tokens_per_second"] for line in lines if line["split"] == "train"]))' \
    "$work/run/metrics.jsonl" | median
}

theirs() {
  "$python" "$root/bench/peers/byte_gpt.py" --text "$text" --size "$1" --batch-size "$batch" \
    --steps "$steps" --threads "$threads" |
    "$python" -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["tokens_per_second"]))' | median
}

middle() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

printf '%s\n' "tandem train --stage bytes --model-size SIZE --batch-size $batch --max-steps $steps, and" \
  "bench/peers/byte_gpt.py (PyTorch $("$python" -c 'import torch; print(torch.__version__)'), eager, fused AdamW)"
printf '%s threads of %s (%s), %s, median of %s rounds, load %s at the start\n' "$threads" "$(nproc --all) cores" \
  "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(date +%Y-%m-%d)" "$rounds" "$load"
awk "BEGIN {exit !($load > 0.5)}" && printf 'The machine is busy with other work: these figures say little.\n'
printf '\n'
printf '%-8s %15s %15s %7s\n' size 'tandem tok/s' 'PyTorch tok/s' ratio
for size in $sizes; do
  our_rates=() their_rates=()
  for _ in $(seq "$rounds"); do
    our_rates+=("$(ours "$size")")
    their_rates+=("$(theirs "$size")")
  done
  a=$(middle "${our_rates[@]}") b=$(middle "${their_rates[@]}")
  printf '%-8s %15s %15s %7s\n' "$size" "$a" "$b" "$(awk "BEGIN {printf \"%.2f\", $a / $b}")"
done

data=(bench data --data "$root/assets/demo" --seconds "${SECONDS_EACH:-5}" --num-workers "$threads" --repeat "$rounds")
reference=${TANDEM_REFERENCE_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/reference/bin/python}
if [ -x "$reference" ]; then data+=(--peer); else printf '\nNo peer for the data: run scripts/references.sh\n'; fi
[ -z "${OUT:-}" ] || { mkdir -p "$OUT" && data+=(--out "$OUT/data.json"); }
printf '\n'
"$tandem" "${data[@]}" -q

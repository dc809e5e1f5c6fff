#!/usr/bin/env bash
# What a machine with a GPU has to show: tests, doctor, the tools, training and generation on a split GPU, figures
# beside the peers. Every part writes OUT/<part>.log and one line here; a part that fails does not stop the others.
#
#   scripts/gpu-check.sh [-o OUT] [-t TANDEM] [PART ...]
#
# Parts: tests look diagnose profile tune split resume, and the figures music speech training. Needs no network; the
# peers need transformers in `python3` (or TANDEM_REFERENCE_PYTHON). About 25 minutes on an H200; name parts for less.
# HOLD_CLOCK=1: diagnose also holds the GPU's clock down for half a minute; not on a machine that others share.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=gpu-check tandem=
fail() { printf 'gpu-check: error: %s\n' "$1" >&2; exit "${2:-1}"; }
while getopts o:t:h option; do
  case $option in
    o) out=$OPTARG ;;
    t) tandem=$OPTARG ;;
    h) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "use scripts/gpu-check.sh [-o OUT] [-t TANDEM] [PART ...]" 2 ;;
  esac
done
shift $((OPTIND - 1))
[ -n "$tandem" ] || for tandem in "$root/build/bin/tandem" "$root/dist/tandem"; do [ ! -x "$tandem" ] || break; done
[ -x "$tandem" ] || fail "there is no \`$tandem\`. Run: make build"
all=(tests look diagnose profile tune split resume music speech training)
[ $# -gt 0 ] || set -- "${all[@]}"
mkdir -p "$out"
work=$(mktemp -d)
# Stopped early it leaves nothing behind: no clock held down for a check, no test that runs on.
held=
trap 'jobs -p | xargs -r kill 2>/dev/null; [ -z "$held" ] || nvidia-smi -rgc >/dev/null; rm -rf "$work"' EXIT
trap 'exit 143' TERM
export TANDEM_CONFIG_DIR=${TANDEM_CONFIG_DIR:-$root/configs} TANDEM_REFERENCE_PYTHON=${TANDEM_REFERENCE_PYTHON:-python3}
# SIZE=tiny PRECISION=fp32 MUSIC=tiny TANDEM_SIMULATE_GPUS=2 tries the script itself where there is no GPU.
size=${SIZE:-normal} precision=${PRECISION:-bf16} music=${MUSIC:-small} two=(--split-gpu 2)
[ -z "${TANDEM_SIMULATE_GPUS:-}" ] || two=()
voice=(--stage gpt --model-size "$size" --precision "$precision" training.val_step=100000 training.save_step=100000
       observe.sample_count=0 observe.sample_step=0)

tests() {  # eight shards at once (most wait for references on the CPU, each on its own share of the cores), then those
           # that time, with nothing beside them; tests that need a fresh CUDA start a child each
  local program=${GPU_TESTS:-$(dirname "$tandem")/gpu_tests} shard pids=() code=0 threads timed='FeedOnGpu.Training*'
  threads=$((($(nproc) + 7) / 8))
  [ -x "$program" ] || program=$(dirname "$tandem")/bin/gpu_tests
  for shard in 0 1 2 3 4 5 6 7; do
    OMP_NUM_THREADS=$threads GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX=$shard "$program" "--gtest_filter=-$timed" \
      >"$out/tests.$shard.log" 2>&1 & pids+=($!)
  done
  for shard in "${pids[@]}"; do wait "$shard" || code=1; done
  "$program" "--gtest_filter=$timed" >"$out/tests.8.log" 2>&1 || code=1
  grep -hE '^\[  (PASSED|FAILED|SKIPPED)' "$out"/tests.?.log
  return $code
}
look() {
  "$tandem" devices && "$tandem" doctor && "$tandem" doctor --test && "$tandem" monitor --once &&
    "$tandem" monitor --once --json
}
corpus() { [ -e "$work/corpus.index" ] || "$tandem" prepare "$root/assets/demo" --language en --train-tokenizer 200 --out "$work/corpus.index" -q; }
# The GPT learns codes of a DVAE; a hardly trained one gives codes as good to measure with.
codes() {
  corpus && { [ -e "$work/dvae/model" ] || "$tandem" train --stage dvae "${voice[@]:2}" --max-steps 20 --batch-size 8 -q \
    --train-data "$work/corpus.index" data.language=en --checkpoint-dir "$work/dvae"; }
}
# The decoder learns to speak what a GPT says.
gpt() {
  codes && { [ -e "$work/gpt/model" ] || "$tandem" train --stage gpt "${voice[@]:2}" --pretrained "$work/dvae/model" --max-steps 20 \
    --batch-size 8 -q --train-data "$work/corpus.index" data.language=en --checkpoint-dir "$work/gpt"; }
}
# 55 lengths half a second apart, up to what the model takes, six clips each: with as many buckets and batches of four
# and two, 110 shapes in an epoch, each of which comes again only in the next. Two epochs are longer than a diagnosis.
lengths() {
  [ -e "$work/lengths.index" ] && return
  mkdir -p "$work/lengths/wavs" && python3 - "$work/lengths" <<'P' &&
import os, random, sys, wave
folder, rate = sys.argv[1], 8000
noise = random.Random(1).randbytes(2 * rate * 28)
with open(f"{folder}/metadata.csv", "w") as table:
    for length in range(55):
        first = f"{folder}/wavs/c{length}-0.wav"
        with wave.open(first, "wb") as sound:
            sound.setparams((1, 2, rate, 0, "NONE", ""))
            sound.writeframes(noise[: 2 * int(rate * (0.9 + length / 2))])
        for copy in range(6):
            if copy: os.link(first, f"{folder}/wavs/c{length}-{copy}.wav")
            table.write(f"c{length}-{copy}|some words of clip {length}|some words of clip {length}\n")
P
  "$tandem" prepare "$work/lengths" --language en --quick --max-seconds 60 --outlier-z 0 --out "$work/lengths.index" -q
}
diagnose() {  # planted: launches one by one, a host that looks, large products, shapes without end, little memory, a clock
              # held down; and all well. Each verdict must be right, and what it says to do must better the figure it named.
  codes || return 1
  local wrong=0 common=(--json --apply data.language=en) gpt=(--stage gpt --data "$work/corpus.index" --pretrained "$work/dvae/model")
  # verdict EXPECTED WHAT BATCHES WORDS...: without a GPU nothing is expected, only run.
  verdict() {
    local expected=$1 what=$2 batches=$3; shift 3
    printf '%s\n' "$what" >&2
    "$tandem" diagnose "${common[@]}" --num-batches "$batches" "$@" >"$work/v.json" || { wrong=1; echo "$what: diagnose failed"; return; }
    cp "$work/v.json" "$out/diagnose-${what//[^a-z0-9]/-}.json"
    python3 - "$expected" "$what" "$work/v.json" "${TANDEM_SIMULATE_GPUS:-}" <<'P' || wrong=1
import json, sys
expected, what, path, simulated = sys.argv[1:]
found = json.load(open(path))
right = simulated or found["verdict"] == expected
print(f"{'ok   ' if right else 'WRONG'} {what:<36} {found['verdict']:<14} {'' if right else 'expected ' + expected}"
      f" gain {found['expected_gain']:.2f}  {found['command']}")
for one in found["evidence"]: print("        - " + one["text"])
tried = found.get("applied")
if tried:
    print(f"        {'applied' if tried['improved'] else 'APPLIED IN VAIN'}: {tried['figure']}: {tried['before']:.4g} before, "
          f"{tried['after']:.4g} after; then {tried['verdict_after']}")
sys.exit(not (right and (simulated or not tried or tried["improved"])))
P
  }
  local launched=("${gpt[@]}" --batch-size 2 training.enable_graph_mode=false)
  verdict launch-bound "v2 size, fp32, launched one by one" 40 "${launched[@]}" --precision fp32
  # Fused, a step in half precision has so few kernels that launching them one by one may keep up.
  verdict launch-bound "v2 size, $precision, launched one by one" 60 "${launched[@]}" --precision "$precision" training.enable_kernel_fusion=false
  verdict host-sync "v2 size, $precision, eager debugging" 20 "${gpt[@]}" --batch-size 16 --precision "$precision" training.enable_eager_debug=true
  verdict fed "v2 size, $precision" 60 "${gpt[@]}" --visible-gpus 0 --batch-size 16 --precision "$precision"
  verdict compute-bound "v2 size, fp32" 30 "${gpt[@]}" --batch-size 8 --precision fp32
  if lengths; then
    verdict recapturing "a shape for every batch" 50 --stage dvae --model-size "$size" --data "$work/lengths.index" --batch-size 4 \
      data.buckets=64 data.validation_share=0 --precision "$precision"
  else
    wrong=1; echo "a shape for every batch: no corpus"
  fi
  # As much memory as training takes, and little more.
  local shared=("${gpt[@]}" "${two[@]}" --data-gpu 0 --model-gpu 1 --batch-size 16 --precision "$precision") taken
  "$tandem" diagnose --json data.language=en --num-batches 20 "${shared[@]}" >"$work/v.json" || { wrong=1; echo "two devices: diagnose failed"; }
  taken=$(python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["figures"]["devices"]["/GPU:1"]["peak_bytes"] * 1.04 / 2**20))' "$work/v.json")
  verdict memory-pressure "memory nearly full, $taken MB" 30 "${shared[@]}" --enable-memory-isolation --model-gpu-memory "$taken"
  if [ -z "${HOLD_CLOCK:-}" ]; then
    echo "the clock is left alone; HOLD_CLOCK=1 holds it down for a moment"
  elif nvidia-smi -lgc 400,400 >/dev/null 2>&1; then
    held=yes
    verdict throttled "clock held at 400 MHz" 30 "${gpt[@]}" --batch-size 8 --precision "$precision"
    nvidia-smi -rgc >/dev/null && held=
  else
    echo "clocks cannot be set here"
  fi
  return $wrong
}
profile() {  # times are those of replayed steps
  gpt || return 1
  local stage wrong=0 more=()
  for stage in dvae gpt decoder; do
    [ $stage != decoder ] || more=(--no-cost)
    "$tandem" profile --stage $stage --pretrained "$work/gpt/model" --precision "$precision" --batch-size 16 --train-data "$work/corpus.index" \
      data.language=en --num-steps 20 --trace "$out/profile-$stage.json" "${more[@]}" >"$work/profile.txt" 2>&1 || wrong=1
    cat "$work/profile.txt"
    ! grep -q 'captured meanwhile' "$work/profile.txt" || { wrong=1; echo "$stage: graphs were captured among the timed steps"; }
  done
  return $wrong
}
music_folder() { [ -d "$work/$music" ] || (cd "$root/tests/parity" && "$TANDEM_REFERENCE_PYTHON" make_musicgen_folders.py "$work" "$music"); }
tune() {
  local wrong=0
  codes && "$tandem" tune "${voice[@]}" --pretrained "$work/dvae/model" --data "$work/corpus.index" data.language=en --minutes "${TUNE_MINUTES:-3}" \
    --out "$out/train.yaml" || wrong=1
  music_folder && "$tandem" tune --for generate --model "$work/$music" --minutes "${TUNE_MINUTES:-2}" --out "$out/generate.yaml" || wrong=1
  return $wrong
}
split() {  # one prepares, one trains; then music on one and on two logical devices, the same bytes
  local wrong=0
  trains || { wrong=1; echo "the training on two devices failed"; }
  same_bytes || { wrong=1; echo "the music failed, or differs"; }
  return $wrong
}
trains() {
  codes && "$tandem" train "${voice[@]}" --pretrained "$work/dvae/model" "${two[@]}" --data-gpu 0 --model-gpu 1 --batch-size 16 --max-steps 220 \
    --train-data "$work/corpus.index" data.language=en --checkpoint-dir "$work/dual" observe.log_step=20 \
    training.enable_memory_isolation=true 2>&1 | tee "$work/trains.txt"
  local code=${PIPESTATUS[0]}
  [ ! -e "$work/dual/report.html" ] || cp "$work/dual/report.html" "$out/dual.html"
  [ "$code" -eq 0 ] && grep -q '\[Step 100\] Model GPU 1: ' "$work/trains.txt"
}
same_bytes() {
  music_folder || return 1
  printf 'id,caption\n' >"$work/c.csv"
  for i in 1 2 3 4 5 6 7; do echo "c$i,a slow piano number $i" >>"$work/c.csv"; done
  "$tandem" generate --model "$work/$music" --captions "$work/c.csv" --seconds 5 -b 3 -o "$work/two" "${two[@]}" || return 1
  "$tandem" generate --model "$work/$music" --captions "$work/c.csv" --seconds 5 -b 7 -o "$work/one" || return 1
  (cd "$work/one" && find . -name '*.wav' -print0 | sort -z | xargs -0 sha256sum) >"$work/one.sums"
  [ "$(wc -l <"$work/one.sums")" -eq 7 ] && (cd "$work/two" && sha256sum -c --quiet "$work/one.sums") &&
    echo "7 clips: the same bytes on one and on two devices"
}
resume() {  # 40 steps; 20, killed, 20 more: the losses are the same to the last digit
  codes || return 1
  local run=("$tandem" train --stage gpt --pretrained "$work/dvae/model" --precision "$precision" --batch-size 8 --train-data "$work/corpus.index"
    data.language=en training.deterministic=true training.save_step=10 training.val_step=100000 --max-steps 40
    observe.sample_count=0 observe.sample_step=0 -q)
  "${run[@]}" --checkpoint-dir "$work/whole" || return 1
  "${run[@]}" --checkpoint-dir "$work/cut" &
  local child=$!
  until [ -e "$work/cut/step-20" ] || ! kill -0 $child 2>/dev/null; do sleep 0.05; done
  kill -9 $child; wait $child 2>/dev/null
  "${run[@]}" --checkpoint-dir "$work/cut" || return 1
  python3 - "$work/whole/metrics.jsonl" "$work/cut/metrics.jsonl" <<'P'
import json, sys
whole, cut = ([(r["step"], r["loss"]) for r in map(json.loads, open(path)) if r["split"] == "train"] for path in sys.argv[1:])
print(f"{len(whole)} losses, {'equal' if whole == cut else 'NOT EQUAL'} after a kill and a rerun")
sys.exit(whole != cut)
P
}
# Figures, each beside its peer in one run. Under torch.compile the peers take minutes to start, and may not run at all.
music() {
  "$tandem" bench generate --size "$music" --batches 1,8,32,64,128 --whole --peer --out "$out/generate-small.json" &&
    "$tandem" bench generate --size large --batches 1,8,32,64 --peer --out "$out/generate-large.json"
}
speech() { "$tandem" bench synthesize --size "$size" --batches 16,64,256 --peer --peer-compile --out "$out/synthesize.json"; }
training() { "$tandem" bench train --size "$size" --batches 16,3 --ways --peer --peer-compile --out "$out/train.json"; }

failed=()
for part; do
  case " ${all[*]} " in *" $part "*) ;; *) fail "there is no part \`$part\`." 2 ;; esac
  started=$SECONDS
  if "$part" >"$out/$part.log" 2>&1; then state=ok; else state=FAILED; failed+=("$part"); fi
  printf 'gpu-check: %-9s %-6s %4d s  %s\n' "$part" "$state" $((SECONDS - started)) "$out/$part.log"
done
[ ${#failed[@]} -eq 0 ] || fail "these parts failed: ${failed[*]}"

#!/usr/bin/env bash
# What a machine with a GPU has to show: tests, doctor, the tools, training and generation on a split GPU, figures
# beside the peers. Every part writes OUT/<part>.log and one line here; a part that fails does not stop the others.
#
#   scripts/gpu-check.sh [-o OUT] [-t TANDEM] [PART ...]
#
# Parts: tests look diagnose profile tune split replicas faults resume, and the figures music speech training. Needs no
# network; the peers need transformers in `python3` (or TANDEM_REFERENCE_PYTHON). About 30 minutes on an H200; name parts
# for less. The part parity is made when it is named: 200 steps in bf16 against coqui-tts, whose losses
# `tests/parity/compare_training.py BUILD --write FOLDER` leaves in a folder elsewhere: PARITY=FOLDER.
# HOLD_CLOCK=1: diagnose also holds the GPU's clock down for half a minute; not on a machine that others share.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=gpu-check tandem=
fail() { printf 'gpu-check: error: %s\n' "$1" >&2; exit "${2:-1}"; }
while getopts o:t:h option; do
  case $option in
    o) out=$OPTARG ;;
    t) tandem=$OPTARG ;;
    h) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "use scripts/gpu-check.sh [-o OUT] [-t TANDEM] [PART ...]" 2 ;;
  esac
done
shift $((OPTIND - 1))
[ -n "$tandem" ] || for tandem in "$root/build/bin/tandem" "$root/dist/tandem"; do [ ! -x "$tandem" ] || break; done
[ -x "$tandem" ] || fail "there is no \`$tandem\`. Run: make build"
all=(tests look diagnose profile tune split replicas faults resume music speech training)
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

gpu_tests() {
  local program=${GPU_TESTS:-$(dirname "$tandem")/gpu_tests}
  [ -x "$program" ] || program=$(dirname "$tandem")/bin/gpu_tests
  printf '%s\n' "$program"
}
tests() {  # eight shards at once (most wait for references on the CPU, each on its own share of the cores), then those
           # that time, with nothing beside them; tests that need a fresh CUDA start a child each
  local program shard pids=() code=0 threads timed='FeedOnGpu.Training*'
  program=$(gpu_tests) threads=$((($(nproc) + 7) / 8))
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
# What the start of a run on two devices prints on standard output, but for the times.
start_of_two() {
  cat <<'LINES'
🎯 Configuring Multi-GPU Mode...
   Data Processing GPU: 0
   Model Training GPU: 1
   Set visible devices: GPU 0 and GPU 1
   Configured memory growth for data GPU
   Configured memory growth for model GPU
✅ Multi-GPU configuration completed successfully
🚀 Intelligent GPU Pipeline: Multi-GPU Mode
   - Data Processing GPU: 0
   - Model Training GPU: 1
   - Prefetching to /GPU:0 with buffer_size=25
🎯 Multi-GPU Mode: Model will be placed on /GPU:1
   (Original GPU 1 is now mapped to GPU:1)
Creating model on device: /GPU:1
LINES
}
# Lines of the contract, memory within limits that were set, devices that do not swing, and the speed beside one device.
trains() {
  codes || return 1
  local wrong=0 run=("$tandem" train "${voice[@]}" --pretrained "$work/dvae/model" --batch-size 16 --max-steps 320 --fresh
    --train-data "$work/corpus.index" data.language=en observe.log_step=40 --buffer-size 50)
  "${run[@]}" "${two[@]}" --data-gpu 0 --model-gpu 1 --checkpoint-dir "$work/dual" --enable-memory-isolation \
    --data-gpu-memory "${DATA_MB:-20000}" --model-gpu-memory "${MODEL_MB:-40000}" >"$work/trains.out" 2>"$work/trains.err" || wrong=1
  cat "$work/trains.out" "$work/trains.err"
  [ ! -e "$work/dual/report.html" ] || cp "$work/dual/report.html" "$out/dual.html"
  # Among other lines, but in this order.
  diff <(start_of_two) <(grep -Fx -f <(start_of_two) "$work/trains.out") || { wrong=1; echo "the start-up lines are others"; }
  for line in "[Step 100] Data GPU 0: " "[Step 100] Model GPU 1: " "[Step 300] Model GPU 1: "; do
    grep -qF "$line" "$work/trains.out" || { wrong=1; echo "there is no line \"$line\""; }
  done
  "${run[@]}" --visible-gpus 0 --checkpoint-dir "$work/single" >"$work/single.txt" 2>&1 || { wrong=1; cat "$work/single.txt"; }
  python3 - "$work" <<'P' || wrong=1
import json, statistics, sys
def speed(run):
    lines = [json.loads(l) for l in open(f"{sys.argv[1]}/{run}/metrics.jsonl")]
    steps = [l for l in lines if l["split"] == "train" and l["step"] > 100]
    return statistics.median(l["tokens_per_second"] for l in steps), statistics.mean(l["wait_share"] for l in steps)
dual, single = speed("dual"), speed("single")
print(f"data and model devices: {dual[0]:.0f} tok/s, wait {100 * dual[1]:.2f} %; one device: {single[0]:.0f} tok/s, "
      f"wait {100 * single[1]:.2f} %; ratio {dual[0] / single[0]:.3f}")
P
  return $wrong
}
# Two replicas learn what one device learns, and their weights are proved equal behind every step.
replicas() {
  codes || return 1
  local run=("$tandem" train "${voice[@]}" --pretrained "$work/dvae/model" --batch-size 8 --max-steps 40 -q training.dropout=0
    --train-data "$work/corpus.index" data.language=en training.deterministic=true training.check_replicas=1)
  "${run[@]}" "${two[@]}" --multi-gpu --checkpoint-dir "$work/mirrored" || return 1
  "${run[@]}" --visible-gpus 0 --checkpoint-dir "$work/alone" || return 1
  python3 - "$work" "$precision" <<'P'
import json, sys
one, two = ([json.loads(l)["loss"] for l in open(f"{sys.argv[1]}/{run}/metrics.jsonl") if '"train"' in l]
            for run in ("alone", "mirrored"))
worst = max(abs(a - b) / abs(a) for a, b in zip(one, two))
most = 1e-5 if sys.argv[2] == "fp32" else 2e-2   # sums in another order; of halves many more bits
print(f"{len(one)} losses, two replicas beside one device: at most {worst:.1e} apart (allowed {most:.0e})")
sys.exit(not (len(one) == len(two) == 40 and worst <= most))
P
}
faults() {  # each fault on two replicas: the exit code, the sentence, and that the run goes on behind it
  codes || return 1
  local wrong=0 row fault code words found state left=0
  local run=("$tandem" train "${voice[@]}" --pretrained "$work/dvae/model" "${two[@]}" --multi-gpu --batch-size 4 -q
    --train-data "$work/corpus.index" data.language=en training.save_step=4 training.val_step=8 training.check_replicas=1
    training.collective_timeout=5 training.max_bad_steps=3)
  for row in 'throw:rank=1,step=6|1|fault on purpose at rank 1, step 6' 'vanish:rank=1,step=6|7|rank 1 of 2 did not arrive' \
    'hang:rank=1,step=6|7|left behind' 'slow:rank=1,step=10|0|' 'nan:rank=1,step=6|0|step 6 was left out' \
    'nan:rank=1,step=6,steps=9|6|3 steps in a row' 'oom:rank=1,step=6|0|worked on in 2 parts' \
    'flip:rank=1,step=6|7|the weights of rank 1 differ' 'judge:rank=1,step=8|1|behind step 8' 'disk:rank=0,step=6|4|no space left' \
    'throw:rank=data,step=6|1|in the preparation of step 6' 'oom:rank=data,step=6|5|no memory left for step 6' \
    'slow:rank=data,step=6|0|'; do
    IFS='|' read -r fault code words <<<"$row"
    rm -rf "$work/fault"
    TANDEM_FAULT=$fault "${run[@]}" --max-steps 12 --checkpoint-dir "$work/fault" >"$work/fault.txt" 2>&1
    found=$? state=ok
    [ "$found" = "$code" ] && { [ -z "$words" ] || grep -qF -- "$words" "$work/fault.txt"; } || state=WRONG
    # What follows a failure: the same command without the fault comes to its end.
    if [ "$found" != 0 ]; then "${run[@]}" --max-steps 12 --checkpoint-dir "$work/fault" >"$work/after.txt" 2>&1 || state='WRONG behind it'; fi
    left=$(find "$work/fault" -name '.*' | wc -l)
    [ "$left" = 0 ] || state="WRONG: $left drafts left"
    printf '%-16s %-32s exit %s  %s\n' "$state" "$fault" "$found" "$(grep -m 1 -oE 'error: .*' "$work/fault.txt" | cut -c 1-110)"
    [ "$state" = ok ] || { wrong=1; tail -n 5 "$work/fault.txt"; [ ! -e "$work/after.txt" ] || tail -n 3 "$work/after.txt"; }
    rm -f "$work/after.txt"
  done
  return $wrong
}
parity() {
  [ -e "${PARITY:-}/losses.json" ] || { echo "PARITY names no folder with losses.json"; return 1; }
  "$(gpu_tests)" --gtest_filter='GpuParity.*'
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
  case " ${all[*]} parity " in *" $part "*) ;; *) fail "there is no part \`$part\`." 2 ;; esac
  started=$SECONDS
  if "$part" >"$out/$part.log" 2>&1; then state=ok; else state=FAILED; failed+=("$part"); fi
  printf 'gpu-check: %-9s %-6s %4d s  %s\n' "$part" "$state" $((SECONDS - started)) "$out/$part.log"
done
[ ${#failed[@]} -eq 0 ] || fail "these parts failed: ${failed[*]}"

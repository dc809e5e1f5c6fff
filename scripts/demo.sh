#!/usr/bin/env bash
# What `make demo` shows: a voice of its own, from a few minutes of recordings. It is trained in three stages on two
# devices (one prepares, one trains; simulated ones where there is no GPU), stopped, resumed, and speaks a sentence.
# About a minute on two cores; leaves everything in build/demo. So small a voice does not speak words; it shows the road.
set -euo pipefail
tandem=$1
run=${2:-build/demo}
rm -rf "$run"
mkdir -p "$run"

show() { printf '\n$ tandem %s\n' "$*"; }
run() { show "$@"; "$tandem" "$@"; }

if "$tandem" devices --json 2>/dev/null | grep -q '"cuda"'; then
  devices=(--split-gpu 2) precision=(--precision bf16)
else
  devices=(--simulate-gpus 2) precision=()
fi
run devices "${devices[@]}"
run prepare assets/demo --language en --out "$run/corpus.index" --train-tokenizer 200

train=(train --stage all --model-size tiny "${devices[@]}" --data-gpu 0 --model-gpu 1 ${precision[@]+"${precision[@]}"}
       --train-data "$run/corpus.index" --checkpoint-dir "$run/voice" --batch-size 8 --stage-steps 100,250,20
       data.language=en data.validation_share=0.05 training.dvae_codes=64 training.learning_rate=2e-3
       training.mask_conditioning=false training.val_step=100 training.save_step=50 observe.sample_step=0
       observe.sample_count=2 observe.log_step=50 training.segment_codes=12)

printf '\nTrained for ten seconds, then stopped as Ctrl-C would:\n'
show "${train[@]}"
"$tandem" "${train[@]}" & child=$!
sleep 10
kill -INT "$child" 2>/dev/null || true
wait "$child" || true

printf '\nThe same command goes on from the checkpoint:\n'
run "${train[@]}"

# A sentence of the corpus.
run synthesize --model "$run/voice/decoder/model" --language en --text "All circuits are busy now." \
    --voice assets/demo/wavs/agent-alreadyon.flac --seed 1 -o "$run/spoken.wav"

# The GPT's loss of codes, at its first step and in the mean of its last ten.
fell=$(sed -n 's/.*"split":"train".*"mel_loss":\([0-9.]*\).*/\1/p' "$run/voice/gpt/metrics.jsonl" |
  awk '{ all[NR] = $1 } END { for (i = NR - 9; i <= NR; ++i) last += all[i] / 10; print all[1], last, (last < 0.7 * all[1]) }')
read -r first last well <<<"$fell"
printf '\nmel loss of the GPT: %.2f at its first step, %.2f at the end\n' "$first" "$last"
[ "$well" = 1 ] || { echo "demo: error: it did not fall well below its start" >&2; exit 1; }

printf '\nDemo done.\n  a sentence    %s\n' "$run/spoken.wav"
for stage in dvae gpt decoder; do printf '  %-13s %s\n' "$stage" "$run/voice/$stage/report.html"; done
printf '  the voice     %s\n' "$run/voice/decoder/model"

#!/usr/bin/env bash
# Lets Prometheus itself judge what `--metrics-port` serves: promtool checks the text of a training and of a generation,
# and a real Prometheus scrapes the training over loopback.
#
#   tests/parity/prometheus.sh BUILD     a build folder
#
# Needs `prometheus` and `promtool` (Debian: apt-get install prometheus), curl and python3. Prints a line a check and
# exits with 1 when one fails.
set -euo pipefail
fail() { printf 'prometheus: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'prometheus: %s\n' "$2" >&2; exit 1; }

root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -eq 1 ] || fail "the build folder is needed." "Use: tests/parity/prometheus.sh build"
tandem=${TANDEM:-$1/bin/tandem}
[ -x "$tandem" ] || fail "there is no \`$tandem\`." "Run: make build"
for program in prometheus promtool curl python3; do
  command -v "$program" >/dev/null || fail "there is no \`$program\`." "Install the packages prometheus, curl and python3."
done
export OMP_NUM_THREADS=1 TANDEM_CONFIG_DIR=${TANDEM_CONFIG_DIR:-$root/configs}

work=$(mktemp -d)
children=()
clean_up() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  for child in "${children[@]}"; do wait "$child" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

failed=0
check() {  # WHAT COMMAND...
  local what=$1; shift
  if "$@" >"$work/check.out" 2>&1; then printf '  ok    %s\n' "$what"
  else printf '  FAIL  %s\n' "$what"; sed 's/^/        /' "$work/check.out"; failed=1; fi
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
wait_for() {  # SECONDS COMMAND...
  local until=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $until ] || return 1; sleep 0.2; done
}
metrics() { curl -sf --max-time 5 "http://127.0.0.1:$1/metrics"; }
has() { metrics "$1" | grep -q "$2"; }

name=$'a "run" \\ of\ntwo lines'  # all that a label escapes
train_port=$(free_port)
"$tandem" train --train-data "$root/LICENSE" --checkpoint-dir "$work/$name" --max-steps 1000000 --batch-size 8 \
  --simulate-gpus 2 --data-gpu 0 --model-gpu 1 training.val_step=20 --metrics-port "$train_port" >"$work/train.log" 2>&1 &
train=$!; children+=("$train")
wait_for 60 has "$train_port" tandem_queue_ready_ratio || { cat "$work/train.log"; fail "the training served no figures."; }
wait_for 60 has "$train_port" tandem_train_validation_loss || true
metrics "$train_port" >"$work/train.txt"
check "promtool has nothing against a training's figures" promtool check metrics <"$work/train.txt"
check "a training tells its validation" grep -q '^tandem_train_validation_loss ' "$work/train.txt"

printf 'id,caption\n' >"$work/captions.csv"
for i in $(seq 300); do printf 'c%s,calm piano\n' "$i" >>"$work/captions.csv"; done
clip_port=$(free_port)
"$tandem" generate --simulate-gpus 2 --model "$root/tests/models/fixtures/musicgen/tiny" --captions "$work/captions.csv" \
  data.text_column=caption --seconds 1 -b 4 -o "$work/clips" --metrics-port "$clip_port" >"$work/generate.log" 2>&1 &
generate=$!; children+=("$generate")
wait_for 60 has "$clip_port" '^tandem_generate_clips_done_total [1-9]' \
  || { cat "$work/generate.log"; fail "the generation served no figures."; }
metrics "$clip_port" >"$work/generate.txt"
check "promtool has nothing against a generation's figures" promtool check metrics <"$work/generate.txt"
kill -INT "$generate"; wait "$generate" || true

server_port=$(free_port)
cat >"$work/prometheus.yml" <<YAML
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: tandem
    static_configs: [{targets: ["127.0.0.1:$train_port"]}]
YAML
check "promtool takes the settings of docs/monitor.md's form" promtool check config "$work/prometheus.yml"
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/store" \
  --web.listen-address="127.0.0.1:$server_port" >"$work/prometheus.log" 2>&1 &
children+=("$!")
query() {  # EXPRESSION: the value of its first sample, or nothing
  curl -sf --max-time 5 "http://127.0.0.1:$server_port/api/v1/query" --data-urlencode "query=$1" | python3 -c \
    'import json, sys; r = json.load(sys.stdin)["data"]["result"]; print(r[0]["value"][1] if r else "")'
}
holds() { [ "$(query "$1")" = 1 ]; }
is_kept() { [ -n "$(query "$1")" ]; }
check "Prometheus scrapes the training" wait_for 60 holds 'up{job="tandem"}'
check "steps arrive" wait_for 30 holds 'tandem_train_step > bool 0'
check "steps go on" wait_for 30 holds 'delta(tandem_train_step[10s]) > bool 0'
check "both devices arrive" wait_for 30 holds 'count(tandem_device_memory_bytes) == bool 2'
check "counters are counters" wait_for 30 holds 'rate(tandem_queue_items_total{queue="moved"}[10s]) > bool 0'
told=$(curl -sf "http://127.0.0.1:$server_port/api/v1/query" --data-urlencode query=tandem_run_info | python3 -c \
  'import json, sys; print(json.load(sys.stdin)["data"]["result"][0]["metric"]["folder"])')
check "labels come back as they were" test "$told" = "$work/$name"
while read -r metric; do
  check "Prometheus keeps $metric" wait_for 10 is_kept "$metric"
done < <(grep -oE '^tandem_[a-z_]+' "$work/train.txt" | sort -u)
before=$(query tandem_train_step)
kill -INT "$train"; wait "$train" || true
check "the end of the run is seen" wait_for 30 holds 'up{job="tandem"} == bool 0'
[ $failed -eq 0 ] || fail "checks failed."
printf 'all well; %s steps were seen\n' "$before"

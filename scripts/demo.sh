#!/usr/bin/env bash
# What `make demo` shows: the devices, then a small GPT trained on two simulated GPUs, one preparing and one
# training, stopped half-way and resumed. Takes under a minute; leaves its run in build/demo.
set -euo pipefail
tandem=$1
run=${2:-build/demo}
rm -rf "$run"
command=("$tandem" train --simulate-gpus 2 --data-gpu 0 --model-gpu 1 --train-data LICENSE
         --checkpoint-dir "$run" observe.log_step=20)

show() { printf '\n$ tandem %s\n' "$*"; }

show devices --simulate-gpus 2
"$tandem" devices --simulate-gpus 2

show "${command[@]:1}" --max-steps 150
"${command[@]}" --max-steps 150

printf '\nThe same command with more steps goes on from the checkpoint:\n'
show "${command[@]:1}" --max-steps 300
"${command[@]}" --max-steps 300

printf '\nDemo done: %s\n' "$run"

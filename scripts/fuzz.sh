#!/usr/bin/env bash
# `make fuzz`: libFuzzer with the address and undefined-behaviour sanitizers on everything that reads files from
# outside. Run: fuzz.sh [-s SECONDS] [TARGET ...]; targets are tests/fuzz/fuzz_TARGET.cpp, 600 seconds each.
# Needs clang++ (Debian: clang, libclang-rt-dev). New inputs are kept in build-fuzz/TARGET, crashes in build-fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'fuzz: error: %s\n' "$1" >&2; exit 1; }
seconds=600
if [ "${1:-}" = -s ]; then seconds=${2:-}; shift 2; fi
[ $# -gt 0 ] || set -- wav metadata index tokenizer
compiler=$(command -v clang++ || command -v clang++-14) || fail "no clang++. Install clang and libclang-rt-dev."
mkdir -p build-fuzz
flags=(-std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -Iinclude -Isrc
       -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL)
# All that needs no LibTorch, once, with coverage.
objects=()
for source in src/util/*.cpp src/audio/file/*.cpp src/text/*.cpp src/data/corpus/*.cpp; do
  object=build-fuzz/$(echo "$source" | tr / _).o
  objects+=("$object")
  [ "$object" -nt "$source" ] || { echo "  $source"; "$compiler" "${flags[@]}" -fsanitize=fuzzer-no-link -c "$source" -o "$object"; }
done
ulimit -v unlimited
for target; do
  [ -e "tests/fuzz/fuzz_$target.cpp" ] || fail "there is no target \`$target\`."
  "$compiler" "${flags[@]}" -fsanitize=fuzzer "tests/fuzz/fuzz_$target.cpp" "${objects[@]}" -o "build-fuzz/fuzz_$target" \
    -lspdlog -lfmt -licui18n -licuuc -lsndfile -lmpg123 -lpthread -ldl
done
for target; do
  mkdir -p "build-fuzz/$target"
  printf 'fuzz: %s for %s s\n' "$target" "$seconds"
  (cd build-fuzz && ./fuzz_"$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
     -artifact_prefix="crash-$target-" "$target" "../tests/fuzz/corpus/$target" 2>"$target.log") ||
    { tail -n 40 "build-fuzz/$target.log"; fail "$target failed; the input is in build-fuzz/crash-$target-*"; }
  grep -E 'stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)' "build-fuzz/$target.log" | sed 's/^/  /'
done

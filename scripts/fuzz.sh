#!/usr/bin/env bash
# `make fuzz`: libFuzzer with the address and undefined-behaviour sanitizers on everything that reads files from
# outside. Run: fuzz.sh [-s SECONDS] [TARGET ...]; targets are tests/fuzz/fuzz_TARGET.cpp, 600 seconds each.
# Needs clang++ (Debian: clang, libclang-rt-dev). New inputs are kept in build-fuzz/TARGET, crashes in build-fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'fuzz: error: %s\n' "$1" >&2; exit 1; }
seconds=600
if [ "${1:-}" = -s ]; then seconds=${2:-}; shift 2; fi
[ $# -gt 0 ] || set -- wav metadata index tokenizer pth safetensors
compiler=$(command -v clang++ || command -v clang++-14) || fail "no clang++. Install clang and libclang-rt-dev."
mkdir -p build-fuzz
flags=(-std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -Iinclude -Isrc
       -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL)
torch=$(echo "$(scripts/setup.sh --prefix)"/lib/python3*/site-packages/torch)
torch_flags=(-DFMT_HEADER_ONLY=1 -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include")
torch_libs=(-Wl,-rpath,"$torch/lib" -Wl,--no-as-needed -lstdc++ "$torch/lib/libtorch.so" "$torch/lib/libtorch_cpu.so"
            "$torch/lib/libc10.so" -Wl,--as-needed)
needs_torch() { [[ $1 == pth || $1 == safetensors ]]; }
# What is under test, once, with coverage: without LibTorch, and, when a target reads tensors, with it.
objects=() torch_objects=()
compile() {   # SOURCE FLAG...
  object=build-fuzz/$(echo "$1" | tr / _).o
  [ "$object" -nt "$1" ] || { echo "  $1"; "$compiler" "${flags[@]}" "${@:2}" -fsanitize=fuzzer-no-link -c "$1" -o "$object"; }
}
for source in src/util/*.cpp src/audio/file/*.cpp src/text/*.cpp src/data/corpus/*.cpp; do
  compile "$source"
  objects+=("$object")
done
for target; do
  needs_torch "$target" || continue
  for source in src/checkpoint/*.cpp; do
    compile "$source" "${torch_flags[@]}"
    torch_objects+=("$object")
  done
  break
done
ulimit -v unlimited
for target; do
  [ -e "tests/fuzz/fuzz_$target.cpp" ] || fail "there is no target \`$target\`."
  more=() libraries=()
  if needs_torch "$target"; then more=("${torch_flags[@]}" "${torch_objects[@]}") libraries=("${torch_libs[@]}"); fi
  "$compiler" "${flags[@]}" -fsanitize=fuzzer "tests/fuzz/fuzz_$target.cpp" "${more[@]}" "${objects[@]}" \
    -o "build-fuzz/fuzz_$target" "${libraries[@]}" -lspdlog -lfmt -licui18n -licuuc -lsndfile -lmpg123 -lpthread -ldl
done
for target; do
  mkdir -p "build-fuzz/$target"
  printf 'fuzz: %s for %s s\n' "$target" "$seconds"
  leaks=1
  if needs_torch "$target"; then leaks=0; fi   # LibTorch keeps what it makes at its start
  (cd build-fuzz && ASAN_OPTIONS=detect_leaks=$leaks ./fuzz_"$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
     -artifact_prefix="crash-$target-" "$target" "../tests/fuzz/corpus/$target" 2>"$target.log") ||
    { tail -n 40 "build-fuzz/$target.log"; fail "$target failed; the input is in build-fuzz/crash-$target-*"; }
  grep -E 'stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)' "build-fuzz/$target.log" | sed 's/^/  /'
done

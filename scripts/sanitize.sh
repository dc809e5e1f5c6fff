#!/usr/bin/env bash
# `make sanitize`: all tests under the address and undefined-behaviour sanitizers, then under the thread
# sanitizer, CPU only. Run: sanitize.sh [asan] [tsan] [-- CTEST ARGUMENTS]
set -uo pipefail
cd "$(dirname "$0")/.."
presets=()
while [ $# -gt 0 ]; do
  case "$1" in
    asan|tsan) presets+=("$1"); shift ;;
    --) shift; break ;;
    *) echo "sanitize: error: unknown argument \`$1\`. Use: scripts/sanitize.sh [asan] [tsan] [-- CTEST ARGUMENTS]" >&2; exit 1 ;;
  esac
done
[ ${#presets[@]} -gt 0 ] || presets=(asan tsan)
JOBS=${JOBS:-$(nproc)}

venv=$(scripts/setup.sh --prefix) || exit 1
export PATH="$venv/bin:$PATH" TANDEM_VENV="$venv"
# The build starts each test program once to list its tests. LibTorch's own leaks at exit are no matter there;
# the tests themselves get their options from tests/CMakeLists.txt.
listing=(env ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=report_bugs=0)

# The thread sanitizer of GCC 12 cannot place its shadow memory where addresses are randomised widely.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi

run() {   # run PRESET [CTEST ARGUMENTS]; the summary goes into a file beside the build
  local preset=$1 build=build-$1; shift
  rm -f "$build/summary"
  cmake --preset "$preset" -B "$build" || { echo "configure failed" >"$build/summary"; return 1; }
  "${listing[@]}" "${fixed_addresses[@]}" cmake --build "$build" -j "$JOBS" || { echo "build failed" >"$build/summary"; return 1; }
  "${fixed_addresses[@]}" ctest --test-dir "$build" --output-on-failure -j "$JOBS" "$@" | tee "$build/ctest.log"
  local code=${PIPESTATUS[0]}
  sed -n '/tests passed\|tests failed\|No tests were found\|^Total Test time\|The following tests FAILED/,$p' "$build/ctest.log" >"$build/summary"
  return "$code"
}

failed=()
for preset in "${presets[@]}"; do run "$preset" "$@" || failed+=("$preset"); done
for preset in "${presets[@]}"; do
  printf '\nsanitize: %s\n' "$preset"
  sed 's/^/  /' "build-$preset/summary"
done
[ ${#failed[@]} -eq 0 ] || { echo "sanitize: error: failed under ${failed[*]}" >&2; exit 1; }

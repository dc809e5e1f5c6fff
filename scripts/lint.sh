#!/usr/bin/env bash
# `make lint`: formatting, the order of layers, shell syntax, clang-tidy. Run: lint.sh BUILD [all]
# clang-tidy reads src/util and src/config (seconds a file); `all` reads every source (LibTorch's headers: minutes), and
# compiles kernels for the oldest GPU of `make dist` (compute capability 7.5), which `make build` does not.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
scope=${2:-}
JOBS=${JOBS:-$(nproc)}
failed=()

step() {   # step NAME COMMAND...
  local name=$1; shift
  if "$@"; then printf 'lint: %-8s fine\n' "$name"; else printf 'lint: %-8s FAILED\n' "$name"; failed+=("$name"); fi
}
need() {
  command -v "$1" >/dev/null || { echo "lint: error: \`$1\` is missing: apt-get install $1" >&2; exit 1; }
}

formatting() { git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format --dry-run -Werror; }
layers() { python3 tests/support/check_layers.py . >"$build/layers.log" || { cat "$build/layers.log"; return 1; }; }
shell_syntax() {
  local file wrong=0
  while IFS= read -r -d '' file; do bash -n "$file" || wrong=1; done < <(git ls-files -z '*.sh' .ci/run)
  return "$wrong"
}
tidy() {
  local folders=(src/util src/config)
  [ "$scope" != all ] || folders=(src)
  [ -f "$build/compile_commands.json" ] || { echo "no $build/compile_commands.json: run \`make build\` first."; return 1; }
  # The compile commands are GCC's: clang neither has its precompiled header nor knows all its flags.
  find "${folders[@]}" -name '*.cpp' -print0 | sort -z |
    xargs -0 -n 1 -P "$JOBS" clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option \
      --extra-arg=-Wno-ignored-optimization-argument --extra-arg=-Wno-unused-command-line-argument 2>"$build/tidy.log"
}

old_gpus() {
  python3 - "$build/compile_commands.json" <<'END' | xargs -0 -r -n 1 -P "$JOBS" bash -c 2>"$build/old_gpus.log" || { tail "$build/old_gpus.log"; return 1; }
import json, re, sys
for one in json.load(open(sys.argv[1])):
    if not one["file"].endswith(".cu") or "90a" in one["command"]: continue  # Hopper's own are compiled for it alone
    words = re.sub(r'"--generate-code=[^"]*"|--generate-code=\S+|-MD|-M[TF] \S+|-o \S+| -c ', " ", one["command"])
    sys.stdout.write(f"cd '{one['directory']}' && {words} -arch=sm_75 -cubin -o /dev/null\0")
END
}

case "$scope" in ''|all) ;; *) echo "lint: error: unknown argument \`$scope\`. Use: scripts/lint.sh BUILD [all]" >&2; exit 1 ;; esac
need clang-format
need clang-tidy
step format formatting
step layers layers
step shell shell_syntax
step tidy tidy
[ "$scope" != all ] || step old-gpus old_gpus
[ ${#failed[@]} -eq 0 ] || { echo "lint: error: ${failed[*]}" >&2; exit 1; }

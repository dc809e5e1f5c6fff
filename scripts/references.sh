#!/usr/bin/env bash
# Installs the outside libraries that Tandem is compared with, in one environment shared by all checkouts. Nothing of
# it is needed to build, test or use Tandem: `make parity` and `tandem bench data --peer` run it by themselves or ask
# for it. Safe to rerun.
#
#   scripts/references.sh            install what is missing; print the environment's Python
#   scripts/references.sh --prefix   print the environment's folder and install nothing
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
say()  { printf 'references: %s\n' "$*" >&2; }
fail() { printf 'references: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'references: %s\n' "$2" >&2; exit 1; }

# torch is the one Tandem is built with; what would bring another along is installed without its dependencies.
WITH=("numpy>=1.26,<3" soundfile==0.13.1 tokenizers==0.22.2 num2words==0.5.14 safetensors==0.8.0 sentencepiece protobuf
      transformers==4.57.6 scipy pyloudnorm pypinyin hangul_romanize ko_speech_tools cutlet unidic-lite spacy
      coqpit-config torchcodec==0.17.0 six==1.17.0 librosa gruut inflect anyascii fsspec tqdm einops encodec
      monotonic-alignment-search pysbd psutil packaging)
WITHOUT=(torchaudio==2.11.0 coqui-tts==0.28.0 coqui-tts-trainer==0.4.0)

torch_env=$("$root/scripts/setup.sh" --prefix)
cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/tandem
env=$cache/reference
case "${1:-}" in
  --prefix) printf '%s\n' "$env"; exit ;;
  "") ;;
  *) fail "unknown argument \`$1\`." "Use: scripts/references.sh [--prefix]" ;;
esac

[ -x "$torch_env/bin/python" ] || fail "no environment with torch in \`$torch_env\`." "Run: make setup"
wanted="${WITH[*]} | ${WITHOUT[*]} | $torch_env"
if [ "$(cat "$env/.complete" 2>/dev/null || true)" != "$wanted" ]; then
  say "installing torchaudio, soundfile, tokenizers, transformers and coqui-tts into $env (about 2 GB)"
  rm -rf "$env"
  "$torch_env/bin/python" -m venv "$env" || fail "\`python -m venv\` failed."
  packages=$("$torch_env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  own=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  printf '%s\n' "$packages" >"$own/torch-environment.pth"
  log=$(mktemp)
  if ! { "$env/bin/pip" install --disable-pip-version-check --no-cache-dir "${WITH[@]}" &&
         "$env/bin/pip" install --disable-pip-version-check --no-cache-dir --no-deps "${WITHOUT[@]}"; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2; rm -f "$log"
    fail "pip could not install the references." "Its last lines are above. Run this again to retry."
  fi
  rm -f "$log"
  printf '%s' "$wanted" >"$env/.complete"
fi
printf '%s\n' "$env/bin/python"

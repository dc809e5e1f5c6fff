#!/usr/bin/env bash
# Compares Tandem live with outside judges: the safetensors package, a plain PyTorch model, soundfile, torchaudio,
# pyloudnorm, Hugging Face tokenizers and transformers, num2words, coqui-tts, TensorBoard, Perfetto, Prometheus and FUSE.
#
#   tests/parity/run.sh BUILD [PART ...]     a build folder; parts: core audio signal tokenizers clean xtts musicgen training
#                                             tensorboard perfetto perfetto-music prometheus slow-disk
#
# Prints a line a comparison and exits with 1 when one fails. The judges are installed by scripts/references.sh.
set -euo pipefail
fail() { printf 'parity: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'parity: %s\n' "$2" >&2; exit 1; }

root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 1 ] || fail "the build folder is needed." "Use: tests/parity/run.sh build"
build=$(cd "$1" 2>/dev/null && pwd) || fail "there is no build folder \`$1\`." "Run: make parity"
shift
[ $# -gt 0 ] || set -- core audio signal tokenizers clean xtts musicgen training tensorboard perfetto perfetto-music prometheus slow-disk
for program in tandem parity_rewrite parity_audio parity_signal parity_tokenize parity_clean parity_xtts \
               parity_train parity_observe; do
  [ -x "$build/bin/$program" ] || fail "there is no \`$build/bin/$program\`." "Run: make parity"
done
python=$("$root/scripts/references.sh")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPATH="$root/bench/peers" PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore OMP_NUM_THREADS=1
export TANDEM_CONFIG_DIR=${TANDEM_CONFIG_DIR:-$root/configs}
failed=()
for part; do
  printf '\n%s\n' "$part"
  case "$part" in
    core) set -- "$root/tests/parity/compare.py" --tandem "$build/bin/tandem" --rewrite "$build/bin/parity_rewrite" \
            --text "$root/LICENSE" --work "$work" ;;
    audio) set -- "$root/tests/parity/compare_audio.py" "$build/bin/parity_audio" ;;
    signal) set -- "$root/tests/parity/compare_signal.py" --tool "$build/bin/parity_signal" --work "$work" ;;
    tokenizers) set -- "$root/tests/parity/compare_tokenizers.py" "$build/bin/parity_tokenize" ;;
    clean) set -- "$root/tests/parity/compare_clean.py" "$build/bin/parity_clean" ;;
    xtts) set -- "$root/tests/parity/compare_xtts.py" "$build" ;;
    musicgen) set -- "$root/tests/parity/compare_musicgen.py" "$build" ;;
    training) set -- "$root/tests/parity/compare_training.py" "$build" ;;
    tensorboard) set -- "$root/tests/parity/compare_tensorboard.py" --tool "$build/bin/parity_observe" --work "$work" ;;
    perfetto) set -- "$root/tests/parity/compare_perfetto.py" --tandem "$build/bin/tandem" --text "$root/LICENSE" \
            --work "$work" ;;
    perfetto-music) set -- "$root/tests/parity/compare_perfetto.py" --tandem "$build/bin/tandem" \
            --music "$root/tests/models/fixtures/musicgen/tiny" --work "$work" ;;
    prometheus) set -- "$root/tests/parity/prometheus.sh" "$build" ;;
    slow-disk) set -- "$root/tests/parity/slow_disk.sh" "$build" ;;
    *) fail "there is no part \`$part\`." ;;
  esac
  judge=("$python" "$@")
  [[ $1 != *.sh ]] || judge=("$@")
  "${judge[@]}" || failed+=("$part")
done
[ ${#failed[@]} -eq 0 ] || fail "these parts failed: ${failed[*]}"

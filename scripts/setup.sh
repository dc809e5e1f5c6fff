#!/usr/bin/env bash
# Installs everything Tandem needs to build and test: Debian/Ubuntu packages, and LibTorch with
# CMake and Ninja from PyPI in one environment shared by all checkouts. Asks nothing; safe to rerun.
#
#   scripts/setup.sh            install what is missing
#   scripts/setup.sh --prefix   print the environment's folder and install nothing
#
# Variables: XDG_CACHE_HOME (where the environment lives, default ~/.cache), PYTHON (default python3),
# TANDEM_VENV (an environment with torch to use instead of our own).
set -euo pipefail

TORCH_VERSION=2.11.0
REQUIREMENTS=("torch==$TORCH_VERSION" "cmake>=3.28,<5" "ninja>=1.11")
NEEDED_MB=6000   # the environment takes 4.7 GB; pip needs room to unpack while it works
PACKAGES=(g++ make git ccache mold python3-venv pkg-config
          libyaml-cpp-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev
          libsndfile1-dev libmpg123-dev libicu-dev ffmpeg libgtest-dev)

PYTHON=${PYTHON:-python3}
CACHE=${XDG_CACHE_HOME:-${HOME:-}/.cache}/tandem

say()  { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'setup: %s\n' "$2" >&2; exit 1; }

python_tag() {
  command -v "$PYTHON" >/dev/null 2>&1 ||
    fail "no \`$PYTHON\` found." "Install Python 3.10 to 3.13, or set PYTHON to its path."
  local version
  version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])') ||
    fail "\`$PYTHON\` does not run." "Set PYTHON to a Python between 3.10 and 3.13."
  case "$version" in
    3.10|3.11|3.12|3.13) printf '%s' "$version" ;;
    *) fail "Python $version is not supported: LibTorch $TORCH_VERSION comes for 3.10 to 3.13." \
            "Set PYTHON to one of those, for example PYTHON=python3.11." ;;
  esac
}

missing_packages() {   # one query for all: it runs at every `make`
  local name installed
  installed=" $(dpkg-query -W -f='${Package}:${db:Status-Status} ' "${PACKAGES[@]}" 2>/dev/null || true)"
  for name in "${PACKAGES[@]}"; do
    case "$installed" in *" $name:installed "*) ;; *) printf '%s ' "$name" ;; esac
  done
}

install_packages() {
  command -v apt-get >/dev/null 2>&1 || {
    say "no apt-get here: please provide ${PACKAGES[*]} yourself; going on."; return; }
  local missing; missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 ||
      fail "these packages are missing and there is no sudo: $missing" "Install them as root, then run this again."
    as_root=(sudo -n)
    sudo -n true 2>/dev/null || as_root=(sudo)
  fi
  say "installing with apt: $missing"
  local log; log=$(mktemp)
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c \
       "apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing" >"$log" 2>&1; then
    tail -n 15 "$log" >&2; rm -f "$log"
    fail "apt could not install: $missing" "Its last lines are above. Is the network reachable, and the disk not full?"
  fi
  rm -f "$log"
}

free_mb() { df -Pm "$1" | awk 'NR==2 {print $4}'; }

# The environment is complete when its stamp names exactly what we ask for; anything else (an
# interrupted download, another version) is thrown away and made again.
install_environment() {
  local venv=$1 stamp="$1/.tandem-complete" wanted
  wanted="${REQUIREMENTS[*]}"
  [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || return 0
  [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ] || fail "neither HOME nor XDG_CACHE_HOME is set." "One of them says where LibTorch goes."
  mkdir -p "$CACHE" 2>/dev/null && [ -w "$CACHE" ] ||
    fail "cannot write to $CACHE, where LibTorch goes." "Set XDG_CACHE_HOME to a folder of yours."
  exec 9>"$CACHE/lock"
  # Two checkouts setting up at once: the second waits and finds the work done.
  flock -n 9 || { say "another set-up is at work; waiting for it"; flock 9; }
  [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || return 0
  if [ -e "$venv" ]; then say "found an unfinished or outdated environment; making it again"; rm -rf "$venv"; fi
  rm -rf "$CACHE/tmp"   # gigabytes, where pip was killed
  local free; free=$(free_mb "$CACHE")
  [ "$free" -ge "$NEEDED_MB" ] ||
    fail "LibTorch needs about $NEEDED_MB MB under $CACHE, but only $free MB are free." \
         "Free some space, or set XDG_CACHE_HOME to a larger disk."
  say "installing LibTorch $TORCH_VERSION, CMake and Ninja into $venv (about 4.7 GB, a few minutes)"
  "$PYTHON" -m venv "$venv" || fail "\`$PYTHON -m venv\` failed." "On Debian it is in the package python3-venv."
  mkdir -p "$CACHE/tmp"
  local log; log=$(mktemp)
  if ! TMPDIR=$CACHE/tmp "$venv/bin/pip" install --no-cache-dir --disable-pip-version-check "${REQUIREMENTS[@]}" \
       >"$log" 2>&1; then
    tail -n 15 "$log" >&2; rm -f "$log"
    fail "pip could not install ${REQUIREMENTS[*]}." \
         "Its last lines are above. Is the network reachable (proxy, PIP_CERT), and the disk not full? Run this again to retry."
  fi
  rm -rf "$log" "$CACHE/tmp"
  printf '%s' "$wanted" >"$stamp.new" && mv "$stamp.new" "$stamp"
}

check_given_environment() {
  compgen -G "$1/lib/python3*/site-packages/torch/lib/libtorch_cpu.so" >/dev/null && [ -x "$1/bin/cmake" ] ||
    fail "TANDEM_VENV is \`$1\`, which does not hold torch and cmake." \
         "Unset it to let this script make an environment, or install them there: ${REQUIREMENTS[*]}"
}

main() {
  local venv tag
  if [ -n "${TANDEM_VENV:-}" ]; then venv=$TANDEM_VENV
  else tag=$(python_tag); venv="$CACHE/torch-$TORCH_VERSION-py$tag"; fi
  if [ "${1:-}" = --prefix ]; then printf '%s\n' "$venv"; return; fi
  [ $# -eq 0 ] || fail "unknown argument \`$1\`." "Use: scripts/setup.sh [--prefix]"
  install_packages
  if [ -n "${TANDEM_VENV:-}" ]; then check_given_environment "$venv"; else install_environment "$venv"; fi
}
main "$@"

#!/usr/bin/env bash
# `make check-fresh`: does a newcomer's machine get through `make test` and `make demo`? Makes a bare Debian 12
# in a folder with nothing but git, make, python3 and certificates (no compiler, no nvcc, no GPU, empty
# caches), clones HEAD into it, and times both commands there. Needs root, debootstrap, 20 GB and the network.
#
# Variables: TANDEM_FRESH_ROOT (the folder, default a temporary one), TANDEM_FRESH_KEEP=1 (leave it there),
# TANDEM_FRESH_REUSE=1 (go on in a kept folder: set-up is then done already and its time means nothing),
# TANDEM_FRESH_TARGETS (default "test demo").
set -euo pipefail
cd "$(dirname "$0")/.."
SUITE=bookworm
BUNDLE=/etc/ssl/certs/ca-certificates.crt

say()  { printf 'check-fresh: %s\n' "$*"; }
fail() { printf 'check-fresh: error: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "making a Debian in a folder needs root: run this as root or with sudo."
command -v debootstrap >/dev/null || fail "\`debootstrap\` is missing: apt-get install debootstrap."
# In a mount namespace of its own, whatever is mounted below vanishes with the script, however it ends.
[ -n "${TANDEM_FRESH_INSIDE:-}" ] || TANDEM_FRESH_INSIDE=1 exec unshare --mount -- "$0" "$@"

temporary=
if [ -z "${TANDEM_FRESH_ROOT:-}" ]; then temporary=$(mktemp -d); fi
root=${TANDEM_FRESH_ROOT:-$temporary/root}
case "$root" in /|/bin*|/etc*|/home|/root|/usr*|/var) fail "TANDEM_FRESH_ROOT=\`$root\` is no folder to fill and remove." ;; esac
root=$(realpath -m "$root")

clean_up() {
  local code=$?
  umount "$root/dev/pts" "$root/dev/shm" "$root/proc" 2>/dev/null || true
  if [ -n "${TANDEM_FRESH_KEEP:-}" ]; then say "kept $root"
  else rm -rf --one-file-system "$root" ${temporary:+"$temporary"}; fi
  exit "$code"
}

# The host's own Debian sources when they need nothing but http; otherwise debootstrap's default.
plain_sources() {
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
    [ -f "$file" ] && grep -q 'http://[^ ]*debian' "$file" && ! grep -v '^ *#' "$file" | grep -q 'https:' && echo "$file"
  done
  true
}

make_system() {
  local mirror='' file
  local sources; mapfile -t sources < <(. /etc/os-release; [ "$ID:$VERSION_CODENAME" != "debian:$SUITE" ] || plain_sources)
  [ ${#sources[@]} -eq 0 ] || mirror=$(grep -hv '^ *#' "${sources[@]}" | grep -o 'http://[^ ]*/debian/\?\( \|$\)' | head -n 1 | tr -d ' ')
  say "making Debian $SUITE in $root"
  local log; log=$(mktemp)
  debootstrap --variant=minbase --include=git,make,python3,ca-certificates "$SUITE" "$root" ${mirror:+"$mirror"} \
    >"$log" 2>&1 || { tail -n 15 "$log" >&2; fail "debootstrap failed; its last lines are above."; }
  rm -f "$log"
  if [ -n "$mirror" ]; then
    rm -f "$root/etc/apt/sources.list"
    for file in "${sources[@]}"; do cp "$file" "$root$file"; done
  fi
  apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until)' >"$root/etc/apt/apt.conf.d/90host" || true
}

# What this host needs to reach the network, and nothing else of it.
connect() {
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  [ ! -f "$BUNDLE" ] || cp -L "$BUNDLE" "$root$BUNDLE"
  [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  mount --bind /dev/pts "$root/dev/pts"   # tests of what is shown on a terminal open one
}

network_variables() {
  local name
  printf '%s\n' PIP_CERT="$BUNDLE" SSL_CERT_FILE="$BUNDLE"
  for name in $(compgen -e | grep -E '^(PIP_.*|https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY)$'); do
    case "$name=${!name}" in PIP_CERT=*|*=/*|*=file:*) ;;   # a folder of this host is a cache of this host
                             *) printf '%s\n' "$name=${!name}" ;; esac
  done
}

inside() {
  local settings; mapfile -t settings < <(network_variables)
  chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 "${settings[@]}" sh -c "cd /root/tandem && $1"
}

if [ -n "${TANDEM_FRESH_REUSE:-}" ]; then [ -d "$root/root" ] || fail "there is no kept system in $root to reuse."
else [ ! -e "$root" ] || [ -z "$(ls -A "$root")" ] || fail "$root is not empty; remove it or set TANDEM_FRESH_REUSE=1."; fi
trap clean_up EXIT
trap 'exit 130' INT TERM
[ -n "${TANDEM_FRESH_REUSE:-}" ] || { mkdir -p "$root"; make_system; }
connect
if [ -d "$root/root/tandem" ]; then git -C "$root/root/tandem" fetch -q "file://$PWD" HEAD && git -C "$root/root/tandem" reset -q --hard FETCH_HEAD
else git clone -q "file://$PWD" "$root/root/tandem"; fi
say "at $(git -C "$root/root/tandem" log -1 --format='%h %s')"

times=()
for target in ${TANDEM_FRESH_TARGETS:-test demo}; do
  say "make $target"
  start=$SECONDS
  inside "make $target" || fail "\`make $target\` failed on a fresh Debian after $((SECONDS - start)) s."
  times+=("$(awk -v s=$((SECONDS - start)) -v t="$target" 'BEGIN { printf "make %s %.1f min", t, s / 60 }')")
done
say "passed: $(IFS=,; echo "${times[*]}" | sed 's/,/, /g')"

#!/usr/bin/env bash
# Makes a training folder of real speech from Debian's Asterisk prompts (CC BY-SA 3.0): one studio speaker a
# language, about 25 minutes, 16 kHz FLAC, LJSpeech layout (metadata.csv, wavs/), licence and attribution beside.
#
#   scripts/fetch-speech.sh en|es|fr [DIR]    the whole package into DIR (default asterisk-LANGUAGE)
#   scripts/fetch-speech.sh --demo [DIR]      the part that is assets/demo, byte for byte (default asterisk-demo)
#   --packages FOLDER                         take the two .deb files from FOLDER instead of downloading them
#
# Needs apt-get, dpkg-deb, ffmpeg and python3, and no root. Rerun it to go on after an interruption: work lies
# in DIR.part until it is complete. Exit codes: 0 done, 2 usage, 4 files or network, 1 anything else.
set -euo pipefail

say()  { printf 'fetch-speech: %s\n' "$*" >&2; }
fail() {   # fail CODE SENTENCE [HINT]
  printf 'fetch-speech: error: %s\n' "$2" >&2
  [ -z "${3:-}" ] || printf 'fetch-speech: %s\n' "$3" >&2
  exit "$1"
}
usage() { fail 2 "$1" "Use: scripts/fetch-speech.sh en|es|fr [DIR], or --demo [DIR]; --packages FOLDER to work offline."; }

here=$(cd "$(dirname "$0")" && pwd)
kind='' target='' packages=''
while [ $# -gt 0 ]; do
  case "$1" in
    -h|--help) sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"; exit 0 ;;
    --demo) [ -z "$kind" ] || usage "--demo stands in place of a language."; kind=demo ;;
    --packages) [ $# -gt 1 ] || usage "--packages needs a folder."; packages=$2; shift ;;
    -*) usage "unknown option \`$1\`." ;;
    *) if [ -z "$kind" ]; then
         case "$1" in en|es|fr) kind=$1 ;; *) usage "\`$1\` is not one of the languages en, es, fr." ;; esac
       elif [ -z "$target" ] && [ -n "$1" ]; then target=$1
       else usage "\`$1\` is one argument too many."; fi ;;
  esac
  shift
done
[ -n "$kind" ] || usage "no language given."
language=${kind/demo/en}
target=${target:-asterisk-$kind}
target=${target%/}
[ -n "$target" ] || usage "the folder cannot be \`/\`."
names=("asterisk-core-sounds-$language" "asterisk-core-sounds-$language-g722")

need() { command -v "$1" >/dev/null 2>&1 || fail 1 "no \`$1\` found, which $2." "Install it: apt-get install $3"; }
need python3 "prepares the transcripts" python3
need ffmpeg "decodes the recordings" ffmpeg
need dpkg-deb "unpacks the packages" dpkg
need flock "keeps two runs apart" util-linux
[ -n "$packages" ] || need apt-get "downloads the packages" apt

if [ -e "$target" ]; then
  count=$(python3 "$here/asterisk_speech.py" verify "$target") || exit
  say "\`$target\` is complete: $count clips. Nothing to do."
  exit 0
fi

part=$target.part
mkdir -p "$part/packages" 2>/dev/null || fail 4 "cannot make the folder \`$part\`." "Is its parent writable?"
exec 9<"$part"
flock -n 9 || fail 4 "another run is filling \`$part\`." "Wait for it, or give another folder."

package_file() {   # package_file NAME: the newest such package in the folder, nothing when there is none
  find "$1" -maxdepth 1 -name "$2_*.deb" | sort -V | tail -n 1
}

for name in "${names[@]}"; do
  folder=${packages:-$part/packages}
  file=$(package_file "$folder" "$name" 2>/dev/null || true)
  if [ -z "$file" ] && [ -n "$packages" ]; then
    fail 4 "there is no \`$packages/${name}_*.deb\`." "Fetch it with: apt-get download $name"
  elif [ -z "$file" ]; then
    apt-cache show "$name" >/dev/null 2>&1 ||
      fail 4 "apt knows no package $name: its lists are missing or old." \
             "Run \`apt-get update\` as root once (Debian: main, Ubuntu: universe), then run this again."
    say "downloading $name"
    # apt moves a file into place only when it is whole. As root it would drop to a user who cannot write here.
    (cd "$folder" && apt-get -q -o APT::Sandbox::User=root download "$name") >"$part/packages/log" 2>&1 || {
      tail -n 5 "$part/packages/log" >&2
      fail 4 "could not download $name." "apt's last lines are above. Is the network there, and the disk not full?"; }
    file=$(package_file "$folder" "$name")
    [ -n "$file" ] || fail 4 "apt downloaded no \`${name}_*.deb\`."
  fi
  dpkg-deb -x "$file" "$part/packages/unpacked" 2>"$part/packages/log" || {
    tail -n 3 "$part/packages/log" >&2
    fail 4 "cannot unpack \`$file\`." "If it is damaged, remove it and run this again; if the disk is full, make room."; }
  dpkg-deb -f "$file" Version >"$part/packages/$name.version"
done

python3 "$here/asterisk_speech.py" make "$kind" "$part" || exit
rm -rf "$part/packages"
sync -f "$part" 2>/dev/null || sync   # a folder in its final place is whole even after a power cut
mv -T "$part" "$target" || fail 4 "cannot rename \`$part\` to \`$target\`."
say "made \`$target\`: $(wc -l <"$target/metadata.csv") clips, $(du -sh "$target" | cut -f1)."

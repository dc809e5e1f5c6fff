#!/usr/bin/env bash
# From nothing to a voice and what outside judges say of it: makes a corpus, trains all three stages on it, speaks
# sentences nobody trained on, and has Whisper and a speaker encoder listen. Every part is skipped when it is done, so
# rerunning goes on where it stopped.
#
#   scripts/train-voice.sh english|russian [DIR] [options] [-- more words for tandem train]
#
#   DIR               where everything goes (default voice-english, voice-russian)
#   --hours H         of made speech (english; default all, about 26)
#   --format F        flac, opus (24 kbit/s) or wav (default flac)
#   --size S          model size (default small)
#   --made H          russian: learn to read from H hours of made speech too (Festival, in the same voice; up to 24;
#                     default 0)
#   --steps A,B,C     steps of dvae, gpt and decoder (default english 3500,8500,7500, russian 3000,1500,6000, with --made
#                     6000,12000,11000)
#   --discriminators N  first step of the decoder with discriminators (default none: they make a voice of hours sound
#                     real and one of minutes harder to understand)
#   --tokens N        of the vocabulary (default 80: near letters, so that unseen words are read by what they are made of)
#   --only PARTS      of: corpus, prepare, train, figures, speak, judge (default all, with commas)
#   --packages DIR    take wordnet-base_*.deb or festvox-ru_*.deb from there instead of downloading it
#   --tandem FILE     the program (default build/bin/tandem, else dist/tandem)
#
# english: hibari-tts (Apache-2.0) speaks the example sentences of WordNet (free, Princeton). russian: the recordings of
# festvox-ru (BSD-like), cut at their pauses, as a quarter of them is longer than a clip may be; with --made also
# sentences of fortunes-ru that Festival glues from phones of those recordings, but of none that is kept apart. Where it
# comes from stands in DIR/corpus/SOURCES.md. A smaller corpus wants fewer steps of the GPT: once its validation loss
# has turned it only learns the clips by heart, and its learning rate should end near there. The voice is judged as
# anybody would hear it, with the sampling that its own config.json asks for. The corpus and the judges need the
# environment of scripts/voice/judges.sh; on a machine without network carry DIR/corpus there and start with
# `--only prepare,train,speak`, then bring DIR/spoken back and judge it here.
# Exit codes: 0 done, 2 usage, 4 files or network, otherwise that of the part that failed.
set -euo pipefail

say()  { printf 'train-voice: %s\n' "$*" >&2; }
fail() {   # fail CODE SENTENCE [HINT]
  printf 'train-voice: error: %s\n' "$2" >&2
  [ -z "${3:-}" ] || printf 'train-voice: %s\n' "$3" >&2
  exit "$1"
}
usage() { fail 2 "$1" "Use: scripts/train-voice.sh english|russian [DIR] [options]; --help lists them."; }

root=$(cd "$(dirname "$0")/.." && pwd)
kind='' target='' hours=26 made=0 format=flac size=small steps='' tokens=80 packages='' tandem='' discriminators=''
only=corpus,prepare,train,figures,speak,judge
more=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h|--help) sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0"; exit 0 ;;
    --) shift; more=("$@"); break ;;
    --hours|--made|--format|--size|--steps|--tokens|--only|--packages|--tandem|--discriminators)
      [ $# -gt 1 ] || usage "$1 needs a value."
      printf -v "${1#--}" '%s' "$2"; shift ;;
    -*) usage "unknown option \`$1\`." ;;
    english|russian) [ -z "$kind" ] || usage "two kinds of corpus given."; kind=$1 ;;
    *) [ -n "$kind" ] || usage "\`$1\` is not one of english, russian."
       [ -z "$target" ] || usage "\`$1\` is one argument too many."
       target=$1 ;;
  esac
  shift
done
[ -n "$kind" ] || usage "no corpus given."
target=${target:-voice-$kind}
language=${kind:0:2}
[ -n "$steps" ] || case "$kind $made" in
  english*) steps=3500,8500,7500 ;; *' 0') steps=3000,1500,6000 ;; *) steps=6000,12000,11000 ;;
esac
[[ $made =~ ^[0-9]+([.][0-9]+)?$ ]] || usage "--made is \`$made\`; expected hours."
[ "$made" = 0 ] || [ "$kind" = russian ] || usage "--made is for russian; all english speech is made."
[[ $steps =~ ^[1-9][0-9]*,[1-9][0-9]*,[1-9][0-9]*$ ]] || usage "--steps is \`$steps\`; expected three numbers, A,B,C."
IFS=, read -r dvae_steps gpt_steps decoder_steps <<<"$steps"
discriminators=${discriminators:-$((decoder_steps + 1))}
[[ $discriminators =~ ^[0-9]+$ ]] || usage "--discriminators is \`$discriminators\`; expected a step."
IFS=, read -r -a parts <<<"$only"
for part in "${parts[@]}"; do
  case "$part" in corpus|prepare|train|figures|speak|judge) ;; *) usage "\`$part\` is no part of it." ;; esac
done
wanted() { case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac }

mkdir -p "$target" 2>/dev/null || fail 4 "cannot make the folder \`$target\`." "Is its parent writable?"
corpus=$target/corpus run=$target/run spoken=$target/spoken
python=
judges_python() { [ -n "$python" ] || python=$("$root/scripts/voice/judges.sh"); }

find_tandem() {
  [ -z "$tandem" ] || return 0
  for tandem in "$root/build/bin/tandem" "$root/dist/tandem"; do [ ! -x "$tandem" ] || return 0; done
  fail 1 "no program \`build/bin/tandem\` or \`dist/tandem\`." "Run \`make build\`, or name it with --tandem."
}

unpack() {   # unpack PACKAGE: into $target/packages/unpacked
  local folder=${packages:-$target/packages} file
  mkdir -p "$target/packages"
  file=$(find "$folder" -maxdepth 1 -name "$1_*.deb" | sort -V | tail -n 1)
  if [ -z "$file" ] && [ -n "$packages" ]; then
    fail 4 "there is no \`$packages/$1_*.deb\`." "Fetch it with: apt-get download $1"
  elif [ -z "$file" ]; then
    say "downloading the package $1"
    (cd "$folder" && apt-get -q -o APT::Sandbox::User=root download "$1") >"$target/packages/log" 2>&1 || {
      tail -n 5 "$target/packages/log" >&2
      fail 4 "could not download $1." "apt's last lines are above. If it lacks lists: \`apt-get update\` as root."; }
    file=$(find "$folder" -maxdepth 1 -name "$1_*.deb" | sort -V | tail -n 1)
  fi
  dpkg-deb -x "$file" "$target/packages/unpacked" || fail 4 "cannot unpack \`$file\`."
}

# A part that finished leaves a mark with what it was asked for; the same again is skipped.
done_before() { [ "$(cat "$target/.$1" 2>/dev/null || true)" = "$2" ] && say "$1: nothing to do."; }
mark() { printf '%s' "$2" >"$target/.$1"; }

if wanted corpus && ! done_before corpus "$hours $made $format"; then
  judges_python
  if [ "$kind" = english ]; then
    unpack wordnet-base
    "$python" "$root/scripts/voice/make_corpus.py" english "$corpus" --wordnet "$target/packages/unpacked" \
      --hours "$hours" --format "$format"
  else
    unpack festvox-ru
    also=()
    if [ "$made" != 0 ]; then
      for package in fortunes-ru festival libestools2.5; do unpack $package; done
      missing=$(LD_LIBRARY_PATH=$(find "$target/packages/unpacked/usr/lib" -maxdepth 1 -mindepth 1 | paste -sd:) \
        ldd "$target/packages/unpacked/usr/bin/festival" | awk '/not found/ { print $1 }' | sort -u | paste -sd' ')
      [ -z "$missing" ] || fail 4 "Festival cannot start here: $missing is missing." \
        "Install it with what it needs: apt-get install festival"
      also=(--fortunes "$target/packages/unpacked" --hours "$made")
    fi
    "$python" "$root/scripts/voice/make_corpus.py" russian "$corpus" --festvox "$target/packages/unpacked" \
      --format "$format" "${also[@]}"
  fi
  mark corpus "$hours $made $format"
fi
if wanted prepare && ! done_before prepare "$tokens $made pieces"; then
  find_tandem
  if [ "$kind" = english ]; then
    "$tandem" prepare "$corpus/train" --language "$language" --train-tokenizer "$tokens"
  else
    tables=(validation)
    if [ "$made" != 0 ]; then   # Pieces overlap: all of them beside made speech would soon be learned by heart.
      { awk 'NR % 6 == 1' "$corpus/train/pieces.jsonl"; awk 'NR % 150 != 1' "$corpus/train/made.jsonl"
      } >"$corpus/train/all.jsonl"
      awk 'NR % 150 == 1' "$corpus/train/made.jsonl" >"$corpus/train/heldout.jsonl"; tables+=(all heldout)
    fi
    "$tandem" prepare "$corpus/train/pieces.jsonl" --language "$language" --train-tokenizer "$tokens" --quick \
      --out "$corpus/train/pieces.index"
    for table in "${tables[@]}"; do
      "$tandem" prepare "$corpus/train/$table.jsonl" --language "$language" --tokenizer "$corpus/train/vocab.json" \
        --quick --out "$corpus/train/$table.index"
    done
  fi
  mark prepare "$tokens $made pieces"
fi
index=$corpus/train/tandem.index
[ "$kind" = english ] || index=$corpus/train/pieces.index
often() { printf '%s:training.%s_step=%s ' "$1" val $(($2 / 12 + 1)) "$1" save $(($2 / 12 + 1)); }
if wanted train; then   # resumes by itself
  find_tandem
  validation=() gpt=(gpt:training.learning_rate=1e-3 gpt:training.warmup_steps=500 gpt:training.weight_decay=0.05)
  dropout=0.15
  if [ "$kind" = russian ]; then   # pieces of a recording must stand on one side; little is soon learned by heart
    validation=(--val-data "$corpus/train/validation.index") dropout=0.1
    [ "$made" != 0 ] || {
      gpt=(gpt:training.learning_rate=8e-4 gpt:training.warmup_steps=300 gpt:training.weight_decay=0.1) dropout=0.3; }
    # Made speech is glued from phones that a model soon knows by heart: how well it reads shows in made sentences that
    # it has not seen, not in recordings.
    [ "$made" = 0 ] || gpt+=("gpt:data.train_data=$corpus/train/all.index" "gpt:data.val_data=$corpus/train/heldout.index")
  fi
  # Each stage wants batches and a learning rate of its own. A GPT that is unsure must still tell the decoder what was
  # said: its latents recall the code that was read, and the decoder hears the recordings' own codes alone. Clips begin
  # elsewhere each epoch, so that they are other codes. Where no discriminators listen, spectra tell what a mel's window
  # is too long for.
  read -r -a turns <<<"$(often dvae "$dvae_steps")$(often gpt "$gpt_steps")$(often decoder "$decoder_steps")"
  "$tandem" train --stage all --stage-steps "$steps" --train-data "$index" --model-size "$size" --precision bf16 \
    --checkpoint-dir "$run" --schedule cosine training.final_learning_rate=0.05 data.buckets=6 "data.language=$language" \
    observe.sample_step=0 "${validation[@]}" "${turns[@]}" \
    dvae:data.batch_size=64 dvae:training.learning_rate=6e-4 dvae:training.warmup_steps=200 dvae:training.dvae_codes=1024 \
    gpt:data.batch_size=64 "${gpt[@]}" "gpt:training.dropout=$dropout" gpt:training.ema_decay=0.999 \
    gpt:training.recall_weight=0.3 gpt:data.start_jitter_ms=46 \
    decoder:data.batch_size=32 decoder:training.learning_rate=4e-4 decoder:training.warmup_steps=100 \
    "decoder:training.discriminator_start=$discriminators" decoder:training.segment_codes=16 \
    decoder:training.speaker_loss_weight=0 decoder:training.own_codes_share=0 decoder:training.spectral_loss_weight=15 \
    "${more[@]}"
fi
if wanted figures; then
  judges_python
  "$python" "$root/scripts/voice/figures.py" "$run" --recordings "$corpus/unseen" | tee "$target/figures.md"
fi
if wanted speak; then   # speaks what is missing
  find_tandem
  python3 - "$corpus/unseen/metadata.csv" "$target/unseen.jsonl" <<'END'
import json, sys
with open(sys.argv[1], encoding="utf-8") as rows, open(sys.argv[2], "w", encoding="utf-8") as out:
    for name, text in (line.rstrip("\n").split("|")[::2] for line in rows):
        out.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")
END
  # The longest recordings tell the voice.
  mapfile -t voice < <(find "$corpus/train/wavs" -type f -printf '%s %p\n' | sort -k1,1rn -k2 | head -n 6 |
    cut -d' ' -f2-)
  "$tandem" synthesize --model "$run/decoder/model" --language "$language" --text-file "$target/unseen.jsonl" \
    --voice "${voice[@]}" -o "$spoken"
fi
if wanted judge; then
  judges_python
  "$python" "$root/scripts/voice/judge.py" --language "$language" --speaker "$corpus/train" --out "$target/judged.md" \
    "the corpus's own=$corpus/unseen" "the trained voice=$spoken"
  say "the table is \`$target/judged.md\`, every clip with what was heard \`$target/judged.tsv\`."
fi

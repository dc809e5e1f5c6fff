#!/usr/bin/env python3
"""Asterisk's voice prompts as a folder of speech with transcripts, in LJSpeech layout. Standard library and ffmpeg.

scripts/fetch-speech.sh downloads and unpacks the packages, then calls
  asterisk_speech.py make en|es|fr|demo FOLDER    fills FOLDER from FOLDER/packages; clips already there are kept
  asterisk_speech.py verify FOLDER                prints how many clips a finished folder has
"""
import concurrent.futures
import dataclasses
import gzip
import os
import pathlib
import re
import subprocess
import sys

SECONDS_A_BYTE = 1 / 8000  # G.722 at 64 kbit/s
KEYS = {"en": ("star", "pound"), "es": ("asterisco", "tecla de numero"), "fr": ("étoile", "dièse")}  # * and #

# Slips of the sheets that are no words of the language. The Spanish sheet has no accents; that stays.
CORRECTIONS = {
    "en": {"represenatives": "representatives", "umute": "unmute", "fourtieth": "fortieth", "thru": "through",
           "Un-indentified": "Unidentified", "witheld": "withheld", "exclaimation-point": "exclamation point",
           "xray": "x-ray"},
    "es": {"ingese": "ingrese", "nimbre": "nombre", "numbre": "nombre", "mesaje": "mensaje", "defeto": "defecto",
           "paracambiar": "para cambiar", "entidade": "entidades", "introdusca": "introduzca",
           "contrasenia": "contrasena", "atravez": "a traves"},
    "fr": {"présentemnet": "présentement", "ce tte": "cette", "démontration": "démonstration",
           "seixième": "seizième", "Aurevoir": "Au revoir", "etes": "êtes", "Felicitation": "Félicitations"},
}
# Entries whose text is not what is said.
DOUBTFUL = {
    "en": set(),
    "es": {"vm-mismatch"},  # the recording ends before the sentence does
    "fr": {"vm-mismatch",  # the same
           "vm-record-prepend",  # two entries run together
           "vm-review-urgent",  # said in other words
           "digits/h-80"},  # the text has the 70th
}
# The Spanish sheet has `marque 1` where the voice says `marque el número uno`, or not `el`.
NOT_AS_WRITTEN = {"es": re.compile(r"[Mm]arque.*\d")}

# The demo: how many clips of how many seconds, for all lengths and about 195 s in all.
DEMO_BANDS = ((51, 1.0, 2.0), (33, 2.0, 3.0), (4, 3.0, 4.0), (4, 4.0, 8.0))

CREDITS = {
    "en": "Copyright 2003-2010 Allison Smith. Recorded by Allison Smith (http://www.theivrvoice.com).\n"
          "Financial contributions by Digium, Inc. (http://www.digium.com).",
    "fr": "Copyright 2006-2008 June Wallack. Recorded by June Wallack (http://www.junewallack.com).\n"
          "Translated into French by Clod Patry, Kristopher Lalletti and June Wallack.\n"
          "Financial contributions by Digium, Inc. (http://www.digium.com), Unlimitel (http://www.unlimitel.ca)\n"
          "and BGM Informatique (www.bgm.qc.ca).",
}
CREDITS["es"] = CREDITS["en"]

NOTICE = """# {title}

These recordings and transcripts are under the Creative Commons Attribution-ShareAlike 3.0 licence (CC BY-SA 3.0):
https://creativecommons.org/licenses/by-sa/3.0/ . Tandem's own licence does not cover them.

## Attribution
Asterisk core sounds ({language}), from http://downloads.asterisk.org/pub/telephony/asterisk/ through the Debian
packages `{audio}` and `{texts}`, version {version}.

{credits}

## What was changed
- {selection}
- The audio was decoded from G.722 and stored as 16 kHz 16-bit mono FLAC; nothing was cut, filtered or levelled.
- In the transcripts: spaces joined, dots and quotes around fragments and notes of a sign (`dash [-]`) removed, the
  keys `*` and `#` written as words, a few misspellings corrected. Slashes in names became `_`.

Made by `{command}`.
"""


class Failure(Exception):
    """A sentence for the user and the exit code."""

    def __init__(self, sentence, code=4):
        super().__init__(sentence)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Prompt:
    key: str
    text: str
    source: pathlib.Path
    seconds: float

    @property
    def id(self):
        return self.key.replace("/", "_")


def read_sheet(path):
    """`key: text` lines; a key that stands there twice is in doubt and left out."""
    entries, twice = {}, set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            key, colon, text = line.strip().partition(":")
            if not colon or key.startswith(";"):
                continue
            if key in entries:
                twice.add(key)
            entries[key] = text
    return {key: text for key, text in entries.items() if key not in twice}


def clean(text, language):
    """What is said, or nothing where that is in doubt. Brackets hold sounds, directions and remarks."""
    text = re.sub(r"\s*\[.\]\s*$", "", text)
    if re.search(r"[\[\](){}<>|]", text) or (language in NOT_AS_WRITTEN and NOT_AS_WRITTEN[language].search(text)):
        return ""
    star, pound = KEYS[language]
    text = text.replace("*", f" {star} ").replace("#", f" {pound} ").replace("…", "...")
    text = re.sub(r"[“”\"]", "", text)
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s+([,.?!])", r"\1", text)
    text = re.sub(r"^\.\.\. ?|,? ?\.\.\.$", "", text)
    for wrong, right in CORRECTIONS[language].items():
        text = re.sub(rf"(?<!\w){wrong}(?!\w)", right, text)
    return text.strip()


def read_prompts(unpacked, language):
    """All prompts with certain words, by key, and how many recordings were left out."""
    sheet = unpacked / f"usr/share/doc/asterisk-core-sounds-{language}/core-sounds-{language}.txt.gz"
    folders = [folder for folder in (unpacked / "usr/share/asterisk/sounds").glob(f"{language}_*") if folder.is_dir()]
    if not sheet.is_file() or len(folders) != 1:
        raise Failure(f"`{unpacked}` does not hold the sounds and transcripts of language {language}.")
    texts = {key: clean(text, language) for key, text in read_sheet(sheet).items()}
    sources = sorted(folders[0].rglob("*.g722"))
    prompts = []
    for source in sources:
        key = source.relative_to(folders[0]).with_suffix("").as_posix()
        if texts.get(key) and key not in DOUBTFUL[language] and source.stat().st_size > 0:
            seconds = source.stat().st_size * SECONDS_A_BYTE
            prompts.append(Prompt(key, texts[key], source, seconds))
    return prompts, len(sources) - len(prompts)


def words_of(text):
    return re.findall(r"[a-z']+", text.lower())


def stands_alone(prompt):
    """A sentence or a phrase, not a word, a name, a letter or words that only make sense between others."""
    words = words_of(prompt.text)
    return (len(words) >= 2 and min(map(len, words[:1] + words[-1:])) > 1
            and not prompt.key.startswith(("digits/", "letters/", "phonetic/", "spy-"))
            and words[0] not in ("followed", "for", "has", "is", "less", "or", "other", "then", "user", "users", "with")
            and words[-1] not in ("as", "by", "currently", "exactly", "extension", "first", "for", "from", "have", "is",
                                  "lasts", "number", "press", "successfully", "to", "was"))


def choose_demo(prompts):
    """Prompts of their own, no text twice, each chosen for the most new words a second."""
    by_text = {prompt.text.lower().rstrip(".!?"): prompt for prompt in reversed(prompts) if stands_alone(prompt)}
    chosen, known = [], set()
    for count, shortest, longest in reversed(DEMO_BANDS):
        band = sorted((prompt for prompt in by_text.values() if shortest <= prompt.seconds < longest),
                      key=lambda prompt: prompt.key)
        for _ in range(min(count, len(band))):
            best = max(band, key=lambda prompt: len(set(words_of(prompt.text)) - known) / prompt.seconds)
            band.remove(best)
            chosen.append(best)
            known.update(words_of(best.text))
    return sorted(chosen, key=lambda prompt: prompt.key)


def encode(prompt, wavs):
    """Integer-only predictors and no version strings: the same bytes on every machine."""
    target = wavs / f"{prompt.id}.flac"
    if target.exists():
        return
    unfinished = target.with_suffix(".tmp")
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "g722", "-i", str(prompt.source), "-map_metadata", "-1",
               "-threads", "1", "-c:a", "flac", "-sample_fmt", "s16", "-compression_level", "5", "-lpc_type", "fixed",
               "-fflags", "+bitexact", "-flags:a", "+bitexact", "-metadata_header_padding", "0", "-f", "flac",
               str(unfinished)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise Failure(f"ffmpeg could not turn `{prompt.source}` into FLAC: {last[0]}")
    os.replace(unfinished, target)


def encode_all(prompts, wavs):
    wavs.mkdir(exist_ok=True)
    terminal = sys.stderr.isatty()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(encode, prompt, wavs) for prompt in prompts]
        try:
            for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                job.result()
                if terminal or done % 100 == 0 or done == len(jobs):
                    print(f"{chr(13) if terminal else ''}fetch-speech: decoded {done} of {len(jobs)} clips",
                          end="" if terminal and done < len(jobs) else "\n", file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def write_notices(folder, language, kind, prompts, left_out):
    names = [f"asterisk-core-sounds-{language}-g722", f"asterisk-core-sounds-{language}"]
    demo = kind == "demo"
    minutes = sum(prompt.seconds for prompt in prompts) / 60
    notice = NOTICE.format(
        title="Licence of the demo corpus" if demo else "Where this speech comes from",
        language=language, audio=names[0], texts=names[1], credits=CREDITS[language],
        version=(folder / f"packages/{names[0]}.version").read_text(encoding="utf-8").strip(),
        command="scripts/fetch-speech.sh " + ("--demo" if demo else language),
        selection=f"{len(prompts)} prompts ({minutes:.1f} minutes) were chosen; " + (
            "sentences and phrases of 1 to 8 s with varied words." if demo else
            f"{left_out} recordings were left out:\n  silence, tones, beeps, those without a transcript and those with "
            "doubtful words."))
    (folder / ("LICENSE.md" if demo else "ATTRIBUTION.md")).write_text(notice, encoding="utf-8")
    if not demo:
        text = folder / f"packages/unpacked/usr/share/doc/{names[1]}/copyright"
        (folder / "LICENSE").write_bytes(text.read_bytes())


def make(kind, folder):
    language = "en" if kind == "demo" else kind
    prompts, left_out = read_prompts(folder / "packages/unpacked", language)
    if kind == "demo":
        prompts = choose_demo(prompts)
    encode_all(prompts, folder / "wavs")
    kept = {f"{prompt.id}.flac" for prompt in prompts}
    for other in (folder / "wavs").iterdir():  # of an interrupted run of another version
        if other.name not in kept:
            other.unlink()
    write_notices(folder, language, kind, prompts, left_out)
    lines = [f"{prompt.id}|{prompt.text}|{prompt.text}\n" for prompt in prompts]
    (folder / "metadata.csv").write_text("".join(lines), encoding="utf-8")


def verify(folder):
    """How many clips a folder made here has; anything missing is a sentence."""
    table = folder / "metadata.csv"
    hint = "Move it away or give another folder."
    if not table.is_file():
        raise Failure(f"`{folder}` is there already and is no folder of speech: it has no metadata.csv. {hint}")
    ids = [line.split("|")[0] for line in table.read_text(encoding="utf-8").splitlines()]
    missing = [name for name in ids if not (folder / f"wavs/{name}.flac").is_file()]
    if missing or not ids:
        what = f"{len(missing)} of {len(ids)} clips are missing, first `{missing[0]}`" if missing else "it has no clips"
        raise Failure(f"`{folder}` is damaged: {what}. {hint}")
    return len(ids)


def main(arguments):
    try:
        if len(arguments) == 3 and arguments[0] == "make" and arguments[1] in (*KEYS, "demo"):
            make(arguments[1], pathlib.Path(arguments[2]))
        elif len(arguments) == 2 and arguments[0] == "verify":
            print(verify(pathlib.Path(arguments[1])))
        else:
            raise Failure("Use: asterisk_speech.py make en|es|fr|demo FOLDER, or verify FOLDER.", 2)
    except Failure as failure:
        print(f"fetch-speech: error: {failure}", file=sys.stderr)
        return failure.code
    except (OSError, UnicodeError, EOFError) as error:
        print(f"fetch-speech: error: {error}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        print("\nfetch-speech: interrupted; run the same command again to go on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Makes a corpus for a voice: FOLDER/train and FOLDER/unseen, both in LJSpeech layout (metadata.csv, wavs/), and
FOLDER/SOURCES.md with where it comes from and under which licence. Clips already there are kept, so an interrupted
run goes on; metadata.csv is written last.

    make_corpus.py english FOLDER --wordnet DIR [--hours H]    hibari-tts speaks sentences of WordNet
    make_corpus.py russian FOLDER --festvox DIR                the recordings of festvox-ru, also cut at their pauses:
                                                               train/pieces.jsonl, train/validation.jsonl
      --fortunes DIR            russian: Festival also speaks sentences of fortunes-ru in the same voice, --hours H of
                                them: train/made.jsonl. Packages fortunes-ru, festival and libestools2.5, unpacked
      --format flac|opus|wav    opus is 24 kbit/s (default flac)
      --unseen N                clips kept apart (default 40)
      --validation N            recordings kept to validate on (russian; default 24)
      --jobs N                  processes (default: one a core)

Run it with the Python of scripts/voice/judges.sh; opus needs ffmpeg.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np
import soundfile

import made_russian
import phrases
import sentences

SOURCES = {
    "english": """# Sources

- Text: example sentences of WordNet 3.0 (Debian package wordnet-base), copyright 2006 Princeton University, under the
  WordNet licence: use, copying, modification and distribution for any purpose without fee, with the notice in
  `/usr/share/doc/wordnet-base/copyright`.
- Voice: hibari-tts 0.2.1 (PyPI), voice `heart`, Apache-2.0. The sound is made, nobody was recorded.
""",
    "russian": """# Sources

- Recordings and text: Debian package festvox-ru, copyright 2005 Nickolay V. Shmyrev, under its BSD-like licence: use,
  copying, modification and distribution without restriction, with the notice in
  `/usr/share/doc/festvox-ru/copyright`. One speaker, 16 kHz. Marks of stress are left out of the text.
- Made speech, where there is any (train/made): text of the Debian package fortunes-ru, copyright 2003 Pavel Maryanov,
  GPL-2, glued from phones of the same recordings by Festival (Debian package festival, University of Edinburgh and
  Carnegie Mellon University, BSD-like licence). Phones of recordings in `unseen` or kept to validate on are not in it.
""",
}
HIBARI_RATE = 24000
voice = None  # of this process


def start_voice() -> None:
    global voice
    from hibari import Hibari
    voice = Hibari(threads=1)


def write_sound(place: pathlib.Path, samples: np.ndarray, rate: int) -> None:
    """Whole or not there."""
    draft = place.with_name(f".{os.getpid()}.{place.name}")
    if place.suffix == ".opus":
        pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        # Level 4 of 10: several times faster, and nobody hears it.
        subprocess.run(["ffmpeg", "-v", "error", "-f", "s16le", "-ar", str(rate), "-ac", "1", "-i", "-", "-c:a",
                        "libopus", "-b:a", "24k", "-compression_level", "4", "-f", "opus", "-y", str(draft)],
                       input=pcm, check=True)
    else:
        soundfile.write(draft, samples, rate, subtype="PCM_16", format=place.suffix[1:].upper())
    draft.replace(place)


def seconds_of(place: pathlib.Path) -> float:
    try:
        return soundfile.info(place).duration
    except (OSError, RuntimeError):
        return 0.0


def speak(job: tuple[pathlib.Path, str]) -> float:
    place, text = job
    done = seconds_of(place)
    if done:
        return done
    samples = voice(text, seed=sentences.number_of(text) % (1 << 31))
    write_sound(place, samples, HIBARI_RATE)
    return len(samples) / HIBARI_RATE


def copy(job: tuple[pathlib.Path, pathlib.Path]) -> float:
    place, recording = job
    done = seconds_of(place)
    if done:
        return done
    return write_again(place, recording)


def write_again(place: pathlib.Path, recording: pathlib.Path) -> float:
    """A WAV file in the corpus's format; seconds."""
    with wave.open(str(recording)) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
    write_sound(place, samples, rate)
    return len(samples) / rate


def write_metadata(folder: pathlib.Path, rows: list[tuple[str, str]]) -> None:
    draft = folder / ".metadata.csv"
    draft.write_text("".join(f"{name}|{text}|{text}\n" for name, text in rows), encoding="utf-8")
    draft.replace(folder / "metadata.csv")


def english(options: argparse.Namespace) -> None:
    clips, unseen = sentences.plan_clips(sentences.read_sentences(options.wordnet), options.unseen)
    started = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=start_voice) as pool:
        for part, texts, limit in (("unseen", unseen, np.inf), ("train", clips, options.hours * 3600)):
            folder = options.folder / part / "wavs"
            folder.mkdir(parents=True, exist_ok=True)
            names = [f"hibari_{part}_{i + 1:05d}" for i in range(len(texts))]
            jobs = [(folder / f"{name}.{options.format}", text) for name, text in zip(names, texts)]
            seconds, rows, batch = 0.0, [], 32 * options.jobs
            for first in range(0, len(jobs), batch):  # until there is enough
                if seconds >= limit:
                    break
                seconds += sum(pool.map(speak, jobs[first:first + batch], chunksize=8))
                rows += zip(names[first:first + batch], texts[first:first + batch])
            write_metadata(folder.parent, rows)
            report(part, rows, seconds, folder, time.monotonic() - started)


def russian(options: argparse.Namespace) -> None:
    voices = options.festvox / "usr/share/festival/voices/russian/msu_ru_nsh_clunits"
    table = (voices / "etc/txt.done.data").read_text(encoding="utf-8")
    clips = [(name, " ".join(text.replace("+", "").split())) for name, text in re.findall(r'\( (\S+) "(.*)" \)', table)]
    clips.sort(key=lambda clip: sentences.number_of(clip[0]))
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for part, rows in (("unseen", clips[:options.unseen]), ("train", sorted(clips[options.unseen:]))):
            folder = options.folder / part / "wavs"
            folder.mkdir(parents=True, exist_ok=True)
            jobs = [(folder / f"{name}.{options.format}", voices / "wav" / f"{name}.wav") for name, _ in rows]
            seconds = sum(pool.map(copy, jobs))
            write_metadata(folder.parent, rows)
            report(part, rows, seconds, folder, time.monotonic() - started)
    held = cut_at_pauses(options, clips[options.unseen:], voices / "lab")
    if options.fortunes:
        make_russian(options, held | {name for name, _ in clips[:options.unseen]})


def make_russian(options: argparse.Namespace, apart: set[str]) -> None:
    folder = options.folder / "train/made"
    folder.mkdir(parents=True, exist_ok=True)
    festival = made_russian.Festival(options.fortunes, options.festvox, apart)
    clips = list(enumerate(made_russian.read_clips(options.fortunes), 1))
    started, seconds, rows, count = time.monotonic(), 0.0, [], 64  # of clips that one process of Festival speaks
    some = [clips[first:first + count] for first in range(0, len(clips), count)]

    def speak(few: list[tuple[int, str]]) -> list[tuple[pathlib.Path, str, float]]:
        places = [(folder / f"made_{number:05d}.{options.format}", text) for number, text in few]
        with tempfile.TemporaryDirectory() as drafts:
            missing = {place: pathlib.Path(drafts) / f"{place.stem}.wav" for place, _ in places
                       if not seconds_of(place)}
            festival.speak([(missing[place], text) for place, text in places if place in missing])
            for place, draft in missing.items():
                if draft.exists():
                    write_again(place, draft)
        return [(place, text, seconds_of(place)) for place, text in places]

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for first in range(0, len(some), 2 * options.jobs):  # until there is enough
            if seconds >= options.hours * 3600:
                break
            for spoken in pool.map(speak, some[first:first + 2 * options.jobs]):
                seconds += sum(length for _, _, length in spoken)
                rows += [{"audio_filepath": f"made/{place.name}", "duration": round(length, 4), "text": text,
                          "speaker": phrases.SPEAKER} for place, text, length in spoken if length]
    phrases.write_manifest(options.folder / "train/made.jsonl", rows)
    report("made", rows, seconds, folder, time.monotonic() - started)


def cut_at_pauses(options: argparse.Namespace, clips: list[tuple[str, str]], labels: pathlib.Path) -> set[str]:
    """Pieces to train on, and whole recordings kept from them to validate on, whose names it returns."""
    found = [(f"wavs/{name}.{options.format}", *phrases.phrases(text, (labels / f"{name}.lab").read_text()))
             for name, text in clips]
    fitting = [clip for clip in found if clip[2] <= phrases.LONGEST]
    held = fitting[:options.validation]
    rows = [row for clip in sorted(found) if clip not in held for row in phrases.pieces(*clip)]
    phrases.write_manifest(options.folder / "train/validation.jsonl", [phrases.whole(*clip) for clip in held])
    phrases.write_manifest(options.folder / "train/pieces.jsonl", rows)
    print(f"make_corpus: {len(rows)} pieces, {sum(row['duration'] for row in rows) / 3600:.2f} h, "
          f"of {len(found) - len(held)} recordings; {len(held)} to validate on", file=sys.stderr)
    return {pathlib.Path(clip[0]).stem for clip in held}


def report(part: str, rows: list, seconds: float, folder: pathlib.Path, wall: float) -> None:
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    print(f"make_corpus: {part}: {len(rows)} clips, {seconds / 3600:.2f} h, {size:.1f} MB, {wall:.0f} s so far",
          file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["english", "russian"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wordnet", type=pathlib.Path)
    parser.add_argument("--festvox", type=pathlib.Path)
    parser.add_argument("--fortunes", type=pathlib.Path)
    parser.add_argument("--hours", type=float, default=5)
    parser.add_argument("--format", choices=["flac", "opus", "wav"], default="flac")
    parser.add_argument("--unseen", type=int, default=40)
    parser.add_argument("--validation", type=int, default=24, help="recordings kept to validate on (russian)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    source = options.wordnet if options.kind == "english" else options.festvox
    if source is None:
        parser.error("--wordnet (english) or --festvox (russian) says where the package was unpacked")
    if options.kind == "english" and not (source / "data.verb").exists():
        options.wordnet = source / "usr/share/wordnet"  # the unpacked package
    options.folder.mkdir(parents=True, exist_ok=True)
    (english if options.kind == "english" else russian)(options)
    (options.folder / "SOURCES.md").write_text(SOURCES[options.kind])
    return 0


if __name__ == "__main__":
    sys.exit(main())

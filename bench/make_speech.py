#!/usr/bin/env python3
"""Makes a folder of LJSpeech-like clips for the data benchmark: 22.05 kHz 16-bit mono WAV of 2 to 10 s, in LJSpeech
layout, real speech: each clip is a row of prompts of the demo corpus with pauses, its text theirs in that order.

  bench/make_speech.py FOLDER [--clips 2000] [--seed 1] [--from assets/demo]

2,000 clips take about 520 MB. The same seed gives the same clips. Needs only Python and ffmpeg. An existing FOLDER is
left as it is. Exit codes: 2 usage, 4 files, 1 otherwise.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import subprocess
import sys
import wave

RATE, BYTES_A_SAMPLE = 22050, 2
SHORTEST, LONGEST = 2.0, 10.0  # seconds
PAUSES = (0.05, 0.35)
LONGEST_PIECE = LONGEST - SHORTEST - PAUSES[1]  # so that one always fits behind a clip that is still too short


class Failure(Exception):
    """A sentence for the user."""


def samples_of(path):
    """The clip as 16-bit samples at RATE."""
    command = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(path), "-ac", "1", "-ar", str(RATE),
               "-fflags", "+bitexact", "-f", "s16le", "-"]
    done = subprocess.run(command, capture_output=True)
    if done.returncode != 0 or not done.stdout:
        raise Failure(f"ffmpeg cannot decode `{path}`: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def read_pieces(folder):
    """(samples, text) of every clip of an LJSpeech folder that is short enough to be a piece."""
    rows = [line.split("|") for line in (folder / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        samples = list(pool.map(lambda row: samples_of(folder / f"wavs/{row[0]}.flac"), rows))
    pieces = [(piece, row[1]) for piece, row in zip(samples, rows) if seconds_of(piece) <= LONGEST_PIECE]
    if not pieces:
        raise Failure(f"`{folder}` has no clip of at most {LONGEST_PIECE} s.")
    return pieces


def seconds_of(samples):
    return len(samples) / (RATE * BYTES_A_SAMPLE)


def compose(pieces, rng):
    """Pieces and pauses up to about a length drawn evenly between SHORTEST and LONGEST."""
    wanted = rng.uniform(SHORTEST, LONGEST)
    parts, texts, length = [], [], 0.0
    while length < max(SHORTEST, wanted - 0.75):
        piece, text = rng.choice(pieces)
        pause = bytes(int(rng.uniform(*PAUSES) * RATE) * BYTES_A_SAMPLE) if parts else b""
        added = seconds_of(pause) + seconds_of(piece)
        if length + added > LONGEST:
            break
        parts += [pause, piece]
        length += added
        texts.append(text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else "."))
    return b"".join(parts), " ".join(texts)


def write_wav(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(BYTES_A_SAMPLE)
        file.setframerate(RATE)
        file.writeframes(samples)


def make(target, count, seed, source):
    if not (source / "metadata.csv").is_file():
        raise Failure(f"`{source}` is no LJSpeech folder: it has no metadata.csv.")
    needed = count * (SHORTEST + LONGEST) / 2 * RATE * BYTES_A_SAMPLE
    parent = target.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(parent).free < 1.1 * needed:
        raise Failure(f"`{parent}` has not the {needed / 1e6:.0f} MB free that {count} clips need.")
    pieces = read_pieces(source)
    part = target.with_name(target.name + ".part")
    if part.exists():
        shutil.rmtree(part)
    (part / "wavs").mkdir(parents=True)
    rng, seconds, lines = random.Random(seed), 0.0, []
    for index in range(count):
        samples, text = compose(pieces, rng)
        name = f"TD{index // 100 + 1:03d}-{index % 100 + 1:04d}"
        write_wav(part / f"wavs/{name}.wav", samples)
        lines.append(f"{name}|{text}|{text}\n")
        seconds += seconds_of(samples)
        if (index + 1) % 500 == 0:
            print(f"make_speech: {index + 1} of {count} clips", file=sys.stderr, flush=True)
    (part / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    if (source / "LICENSE.md").is_file():  # what is made of a corpus is under its licence
        shutil.copy(source / "LICENSE.md", part / "LICENSE.md")
    os.rename(part, target)
    return seconds


def main():
    demo = pathlib.Path(__file__).resolve().parent.parent / "assets/demo"
    parser = argparse.ArgumentParser(description="Make LJSpeech-like clips from real speech.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--clips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=demo)
    options = parser.parse_args()
    if options.clips < 1:
        parser.error("--clips must be at least 1")
    try:
        if options.folder.exists():
            raise Failure(f"`{options.folder}` is there already. Remove it or give another folder.")
        if not shutil.which("ffmpeg"):
            print("make_speech: error: no `ffmpeg` found: apt-get install ffmpeg", file=sys.stderr)
            return 1
        seconds = make(options.folder, options.clips, options.seed, options.source)
    except (Failure, OSError) as failure:
        print(f"make_speech: error: {failure}", file=sys.stderr)
        return 4
    print(f"{options.folder}: {options.clips} clips, {seconds / 60:.1f} minutes, mean {seconds / options.clips:.2f} s, "
          f"{seconds * RATE * BYTES_A_SAMPLE / 1e6:.0f} MB, {RATE} Hz 16-bit mono, seed {options.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Russian that nobody recorded, to learn reading from before a small corpus is learned: the sentences of fortunes-ru,
about 22,000 different ones, spoken by espeak-ng in several voices: 25 hours, more by reading them again in other
voices. Which voice speaks what is arithmetic on its letters: the same in every run.
"""
import functools
import io
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import soundfile

import sentences

PLAIN = re.compile(r"[А-Яа-яЁё][А-Яа-яЁё ,.!?;:-]*[.!?]")
VOICES = [f"m{i}" for i in range(1, 8)] + [f"f{i}" for i in range(1, 6)]  # variants of espeak-ng's
SLOWEST, SPEEDS = 130, 50  # words a minute


def read_sentences(fortunes: pathlib.Path) -> list[str]:
    """In an order that has nothing to do with where they stand. Each is 3 to 25 words, without digits."""
    found = {}
    for file in sorted((fortunes / "usr/share/games/fortunes/ru").glob("*.u8")):
        for quote in re.split(r"\n%\n", file.read_text(encoding="utf-8", errors="ignore")):
            said = re.sub(r"\n\s*--.*", "", quote)  # without who said it
            for text in re.split(r"(?<=[.!?])\s+", " ".join(said.split())):
                text = re.sub(r"\.{2,}", ".", text).replace("—", "-")
                if PLAIN.fullmatch(text) and 3 <= len(text.split()) <= 25:
                    found.setdefault(text.lower(), text)
    return sorted(found.values(), key=sentences.number_of)


@functools.cache
def program() -> str:
    found = shutil.which(os.environ.get("ESPEAK", "espeak-ng"))
    if not found:
        raise SystemExit("make_corpus: error: there is no `espeak-ng`. Install the package espeak-ng, or name it with "
                         "ESPEAK=FILE.")
    return found


def speak(text: str, reading: int) -> tuple[np.ndarray, int]:
    number = sentences.number_of("voice " + text)
    words = [program(), "-v", f"ru+{voice_of(text, reading)}", "-s", str(SLOWEST + number // 100 % SPEEDS), "--stdout",
             text]
    sound = subprocess.run(words, check=True, capture_output=True).stdout
    # The length in the head of what goes to a pipe is made up.
    samples, rate = soundfile.read(io.BytesIO(sound[44:]), dtype="float32", channels=1, samplerate=22050,
                                   subtype="PCM_16", format="RAW")
    return samples, rate


def voice_of(text: str, reading: int) -> str:
    """Every reading of a text has another voice."""
    return VOICES[(sentences.number_of("voice " + text) + 5 * reading) % len(VOICES)]

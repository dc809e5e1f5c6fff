"""Phrases of festvox-ru's recordings, found by its phone labels: a pause between phones is a place between words, the
one with as many vowels before it. Pieces of one or more phrases make long recordings usable and give a small corpus
more beginnings and ends.
"""
import json
import pathlib
import re

VOWELS = {"a", "aa", "ae", "ay", "e", "ee", "i", "ii", "o", "oo", "u", "uu", "y", "yy", "ur"}  # of the labels
LETTERS = re.compile("[аеёиоуыэюя]", re.I)
SPEAKER = "festvox"
SHORTEST_PAUSE, BEFORE, AFTER = 0.12, 0.15, 0.25  # seconds; of silence around a piece
SHORTEST, LONGEST = 0.7, 11.6  # seconds of a piece; what `tandem prepare` takes
PLACES, CODE = 4, 1024 / 22050  # each piece begins at so many places in the grid of the codes, which then differ


def word_before(words: list[str], counts: list[int], first: int, vowels: int) -> int | None:
    """The word from `first` on after which `vowels` were said. Words without vowels leave several: then the one with
    a mark, with the dash behind it."""
    fits = [k for k in range(first, len(words) - 1) if counts[k] == vowels]
    fits = [k for k in fits if not words[k][-1].isalpha()] or fits
    spoken = [k for k in fits if re.search(r"\w", words[k])]
    return fits[-1] if fits and len(spoken) <= 1 else None


def phrases(text: str, labels: str) -> tuple[list[tuple[str, float, float]], float]:
    """Texts with the seconds of their first and last sound, and the length of the recording."""
    rows = [line.split() for line in labels.splitlines() if len(line.split()) == 3]
    phones = [(float(before[0]), float(row[0]), row[2]) for before, row in zip([["0"]] + rows, rows)]
    words = text.split(" ")
    counts = [len(LETTERS.findall(" ".join(words[:k + 1]))) for k in range(len(words))]
    found, first, start, end, vowels = [], 0, None, 0.0, 0
    for begins, ends, phone in phones:
        if phone != "pau":
            start, end, vowels = begins if start is None else start, ends, vowels + (phone in VOWELS)
        elif start is not None and ends - begins >= SHORTEST_PAUSE:
            last = word_before(words, counts, first, vowels)
            if last is not None:
                found.append((" ".join(words[first:last + 1]), start, end))
                first, start = last + 1, None
    found.append((" ".join(words[first:]), start, end))
    return found, phones[-1][1]


def piece(file: str, parts: list[tuple[str, float, float]], start: float, end: float) -> dict:
    text = " ".join(text for text, _, _ in parts).strip(" -")
    return {"audio_filepath": file, "offset": round(start, 4), "duration": round(end - start, 4), "text": text,
            "speaker": SPEAKER}


def pieces(file: str, parts: list[tuple[str, float, float]], length: float) -> list[dict]:
    """All rows of neighbouring phrases that are not too long."""
    rows = []
    for first in range(len(parts)):
        earlier = (parts[first - 1][2] + parts[first][1]) / 2 if first else 0.0
        for last in range(first, len(parts)):
            later = (parts[last][2] + parts[last + 1][1]) / 2 if last + 1 < len(parts) else length
            begins, ends = max(parts[first][1] - BEFORE, earlier), min(parts[last][2] + AFTER, later)
            starts = {max(0.0, begins - place * CODE / PLACES) for place in range(PLACES)}
            rows += [piece(file, parts[first:last + 1], start, ends) for start in sorted(starts)
                     if SHORTEST <= ends - start <= LONGEST]
    return rows


def whole(file: str, parts: list[tuple[str, float, float]], length: float) -> dict:
    return piece(file, parts, max(0.0, parts[0][1] - BEFORE), min(parts[-1][2] + AFTER, length))


def write_manifest(place: pathlib.Path, rows: list[dict]) -> None:
    place.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")

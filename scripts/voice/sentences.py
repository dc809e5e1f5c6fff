"""English sentences for a made corpus: the examples in WordNet's glosses, about 33,000 different ones of everyday
language. Which sentence goes where is arithmetic on its own letters: the same in every run.
"""
import hashlib
import pathlib
import re

PLAIN = re.compile(r"[A-Za-z][A-Za-z' ,;!?-]*")
# A whole sentence begins like this; other examples are phrases ("an outlet for healthy action").
SUBJECT = re.compile(r"(he|she|it|we|they|I|you|the|this|that|these|those|there|his|her|my|our|their|your|who|what|"
                     r"all|some|many|one|everyone|nobody|please|don't|let's) ", re.I)


def number_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def read_sentences(wordnet: pathlib.Path) -> list[str]:
    """In an order that has nothing to do with the alphabet. Each is 4 to 25 words, without digits."""
    found = {}
    for part in ("verb", "adj", "adv", "noun"):
        for line in (wordnet / f"data.{part}").read_text(encoding="latin-1").splitlines():
            for example in re.findall(r'"([^"]+)"', line.partition("|")[2]):
                text = " ".join(example.split()).rstrip(".,;- ")
                if PLAIN.fullmatch(text) and 4 <= len(text.split()) <= 25:
                    found.setdefault(text.lower(), text)
    return sorted(found.values(), key=number_of)


def spoken(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text[-1] in "!?" else ".")


def plan_clips(sentences: list[str], unseen: int) -> tuple[list[str], list[str]]:
    """Texts of the clips to train on, one to three sentences each, and of those nobody trains on: whole sentences of
    six to fourteen words."""
    held, rest = [], []
    for text in sentences:
        good = 6 <= len(text.split()) <= 14 and SUBJECT.match(text)
        (held if good and len(held) < unseen else rest).append(text)
    clips, place = [], 0
    while place < len(rest):
        count = (1, 1, 1, 2, 2, 3)[number_of("count " + rest[place]) % 6]
        clips.append(" ".join(spoken(text) for text in rest[place:place + count]))
        place += count
    return clips, [spoken(text) for text in held]

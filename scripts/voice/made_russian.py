"""Russian that nobody said, in the voice of festvox-ru: the recordings are a voice of the Festival synthesizer, which
glues new sentences from their phones. It speaks the sentences of fortunes-ru, about 24 hours. What stands in which
clip is arithmetic on its letters: the same in every run.
"""
import os
import pathlib
import re
import subprocess
import tempfile

import sentences

PLAIN = re.compile(r"[А-Яа-яЁё][А-Яа-яЁё ,.!?;:-]*[.!?]")
LONGEST = 120  # letters of a clip: eleven seconds
VOICE = "voices/russian/msu_ru_nsh_clunits"
# A leaf of a selection tree: the numbers of the phones that fit, each with its distance, and their spread.
LEAF = re.compile(r"\(\(((?:\(\d+ [^()]+\)\s*)+)\)\s*([^()\s]+)\)")
SPEAK = """(unwind-protect
  (utt.save.wave (utt.synth (Utterance Text "{text}")) "{place}" 'riff)
  (format stderr "not spoken: {text}\\n"))
"""


def read_clips(fortunes: pathlib.Path) -> list[str]:
    """Texts of one to three sentences, in an order that has nothing to do with where they stand. Each sentence is 3 to
    25 words, without digits."""
    found = {}
    for file in sorted((fortunes / "usr/share/games/fortunes/ru").glob("*.u8")):
        for quote in re.split(r"\n%\n", file.read_text(encoding="utf-8", errors="ignore")):
            said = re.sub(r"\n\s*--.*", "", quote)  # without who said it
            for text in re.split(r"(?<=[.!?])\s+", " ".join(said.split())):
                text = re.sub(r"\.{2,}", ".", text).replace("—", "-")
                if PLAIN.fullmatch(text) and 3 <= len(text.split()) <= 25 and len(text) <= LONGEST:
                    found.setdefault(text.lower(), text)
    clips = []
    for text in sorted(found.values(), key=sentences.number_of):
        wanted = sentences.number_of("long " + text) % 2
        if wanted and clips and len(clips[-1]) + 1 + len(text) <= LONGEST:
            clips[-1] += " " + text
        else:
            clips.append(text)
    return clips


def without(tree: str, phones: set[str]) -> str:
    """A file of selection trees without some phones (named like `a_43`). A leaf that would have none keeps them all."""
    parts = re.split(r'^\("([^"]+)"', tree, flags=re.M)  # what stands before, then name and tree in turn
    for i in range(1, len(parts), 2):
        def thin(leaf: re.Match) -> str:
            fit = re.findall(r"\((\d+) ([^()]+)\)", leaf[1])
            kept = [one for one in fit if f"{parts[i]}_{one[0]}" not in phones] or fit
            return "((" + " ".join(f"({number} {distance})" for number, distance in kept) + f") {leaf[2]})"
        parts[i + 1] = LEAF.sub(thin, parts[i + 1])
    return parts[0] + "".join(f'("{parts[i]}"' + parts[i + 1] for i in range(1, len(parts), 2))


class Festival:
    """The synthesizer of unpacked packages (festival, libestools2.5, festvox-ru), which never glues phones of the
    recordings `apart`."""

    def __init__(self, unpacked: pathlib.Path, voices: pathlib.Path, apart: set[str]):
        self.unpacked = unpacked.resolve()
        self.folder = tempfile.TemporaryDirectory()
        library, voice = pathlib.Path(self.folder.name), pathlib.Path(self.folder.name) / VOICE
        self.link(self.unpacked / "usr/share/festival", library, "voices")
        self.link(voices.resolve() / "usr/share/festival" / VOICE, voice, "festival")
        self.link(voices.resolve() / "usr/share/festival" / VOICE / "festival", voice / "festival", "trees")
        (voice / "festival/trees").mkdir()
        source = voices / "usr/share/festival" / VOICE / "festival"
        catalogue = (source / "clunits/msu_ru_nsh.catalogue").read_text().split("EST_Header_End\n")[1]
        phones = {line.split()[0] for line in catalogue.splitlines() if line.split()[1] in apart}
        tree = (source / "trees/msu_ru_nsh.tree").read_text(encoding="utf-8", errors="surrogateescape")
        (voice / "festival/trees/msu_ru_nsh.tree").write_text(without(tree, phones), errors="surrogateescape")

    @staticmethod
    def link(source: pathlib.Path, target: pathlib.Path, but: str) -> None:
        target.mkdir(parents=True, exist_ok=True)
        for entry in source.iterdir():
            if entry.name != but:
                (target / entry.name).symlink_to(entry)

    def speak(self, jobs: list[tuple[pathlib.Path, str]]) -> None:
        """Writes WAV files, where a text can be spoken."""
        lines = [SPEAK.format(text=text, place=place) for place, text in jobs]
        with tempfile.NamedTemporaryFile("w", suffix=".scm") as script:
            script.write("(voice_msu_ru_nsh_clunits)\n" + "".join(lines))
            script.flush()
            paths = [str(folder) for folder in self.unpacked.glob("usr/lib/*")]
            library = ":".join(paths + [os.environ.get("LD_LIBRARY_PATH", "")])
            subprocess.run([self.unpacked / "usr/bin/festival", "--libdir", self.folder.name, "--datadir",
                            self.folder.name, "-b", script.name], check=True, stderr=subprocess.PIPE,
                           env=os.environ | {"LD_LIBRARY_PATH": library})

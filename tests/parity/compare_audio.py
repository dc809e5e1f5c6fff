"""Reading and writing of sound files against soundfile (libsndfile in Python).

    compare_audio.py AUDIO_TOOL [--bench]

WAV, AIFF and FLAC sample by sample, MP3, OGG and Opus within 1e-4 (decoder versions differ). Prints one line a
comparison and exits with 1 when one fails. --bench: files/s of both, 10 s clips, 16 bit, 22.05 kHz, one thread.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import soundfile

WAV_SUBTYPES = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW", "IMA_ADPCM", "MS_ADPCM",
                "GSM610")
NATIVE = WAV_SUBTYPES[:8]
FRAMES = 6001  # odd, and no multiple of any block


class Report:
    def __init__(self):
        self.failed = 0

    def line(self, name, good, note=""):
        self.failed += not good
        print(f"{name} ... {'ok' if good else 'FAILED'}{' ' + note if note else ''}", flush=True)


class Tool:
    def __init__(self, path):
        self.path = str(pathlib.Path(path).resolve())

    def run(self, *words, data=None):
        return subprocess.run([self.path, *map(str, words)], input=data, capture_output=True, check=False)

    def decode(self, path, first=0, count=-1, how="decode"):
        done = self.run(how, path, first, count)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode())
        return numpy.frombuffer(done.stdout, numpy.float32)

    def info(self, path):
        return json.loads(self.run("info", path).stdout)


def signal(random, frames, channels):
    time_axis = numpy.arange(frames)[:, None] / 16000
    tone = 0.4 * numpy.sin(2 * numpy.pi * (220 + 110 * numpy.arange(channels)) * time_axis)
    samples = (tone + 0.1 * random.standard_normal((frames, channels))).clip(-1, 1)
    samples[:2] = [[1.0], [-1.0]]
    return samples.astype(numpy.float32)


def judged(path):
    """What soundfile reads, as the mean over channels in double precision, rounded once."""
    samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
    return samples.astype(numpy.float64).mean(axis=1).astype(numpy.float32)


def compare_parts(report, tool, name, path, allowed, parts, how="decode"):
    worst, problem, whole = 0.0, "", judged(path)
    for first, count in parts:
        # Cut out of the whole: libsndfile's own seeks in OGG and MP3 miss.
        theirs = whole[first:] if count < 0 else whole[first:first + count]
        try:
            ours = tool.decode(path, first, count, how)
        except RuntimeError as error:
            problem = str(error).strip()
            break
        if ours.shape != theirs.shape:
            problem = f"{ours.shape[0]} frames, soundfile has {theirs.shape[0]}"
            break
        worst = max(worst, float(numpy.abs(ours - theirs).max(initial=0)))
    report.line(name, not problem and worst <= allowed, problem or (f"{worst:.1e}" if worst else ""))


def compare_wav(report, tool, work, random):
    parts = ((0, -1), (0, 1), (1, 17), (4000, 1500), (FRAMES - 1, 1))
    for container in ("WAV", "WAVEX", "RF64"):
        for subtype in WAV_SUBTYPES:
            for channels in range(1, 9):
                if not soundfile.check_format(container, subtype):
                    continue
                if (subtype == "GSM610" and channels > 1) or (subtype.endswith("ADPCM") and channels > 2):
                    continue
                path = work / f"{container}_{subtype}_{channels}.wav"
                soundfile.write(path, signal(random, FRAMES, channels), 16000, subtype, format=container)
                name = f"{container} {subtype}, {channels} channels"
                # Sums of doubles depend on their order in the last bit; everything shorter is exact.
                allowed = 6e-8 if subtype in ("DOUBLE", "FLOAT", "PCM_32") and channels > 2 else 0
                compare_parts(report, tool, name, path, allowed, parts)
                native = tool.info(path)["native"]
                if native != (subtype in NATIVE):
                    report.line(f"{name}: read by {'our' if native else 'the other'} reader", False)
                if channels == 3 and subtype in NATIVE:
                    compare_parts(report, tool, f"{name}, through libsndfile", path, allowed, parts,
                                  "decode-sndfile")


def compare_others(report, tool, work, random):
    parts = ((0, -1), (3000, 2000), (1, 100), (FRAMES - 500, 500))
    kinds = [("FLAC", "PCM_16", 0), ("FLAC", "PCM_24", 0), ("FLAC", "PCM_S8", 0), ("AIFF", "PCM_16", 0),
             ("AIFF", "PCM_24", 0), ("AIFF", "FLOAT", 0), ("AU", "PCM_16", 0), ("CAF", "PCM_16", 0), ("W64", "PCM_16", 0),
             ("NIST", "PCM_16", 0), ("OGG", "VORBIS", 1e-4), ("OGG", "OPUS", 1e-4), ("MP3", "MPEG_LAYER_III", 1e-4)]
    for container, subtype, allowed in kinds:
        for channels in (1, 2):
            path = work / f"{container}_{subtype}_{channels}.bin"  # the extension says nothing
            soundfile.write(path, signal(random, FRAMES, channels), 16000, subtype, format=container)
            compare_parts(report, tool, f"{container} {subtype}, {channels} channels", path, allowed, parts)


def compare_writing(report, tool, work, random):
    exact = (numpy.arange(-32768, 32768) / 32768).astype(numpy.float32)
    noise = signal(random, 40000, 2)
    for form, channels, samples in (("wav16", 1, exact), ("flac", 1, exact), ("wav16", 2, noise), ("flac", 2, noise),
                                    ("wav32", 2, noise)):
        path = work / f"written.{form}"
        done = tool.run("write", path, form, channels, 22050, data=samples.tobytes())
        got, rate = soundfile.read(path, dtype="float32", always_2d=True)
        wanted = samples.reshape(-1, channels)
        if form != "wav32":
            # The nearest step; soundfile takes the one below for WAV and the nearest for FLAC.
            wanted = (numpy.floor(numpy.abs(wanted) * 32768 + 0.5) * numpy.sign(wanted)).clip(-32768, 32767) / 32768
        good = done.returncode == 0 and rate == 22050 and got.shape == wanted.shape and (got == wanted).all()
        report.line(f"write {form}, {channels} channels, {len(wanted)} frames", good)
        theirs = work / "theirs.wav"
        soundfile.write(theirs, samples.reshape(-1, channels), 22050, "FLOAT" if form == "wav32" else "PCM_16")
        step = float(numpy.abs(soundfile.read(theirs, dtype="float32", always_2d=True)[0] - got).max())
        allowed = 0 if form == "wav32" or samples is exact else 1 / 32768
        report.line(f"write {form}, {channels} channels: soundfile's file is at most one step away", step <= allowed,
                    f"{step * 32768:.0f} steps")


def bench(report, tool, work, random):
    folder = work / "bench"
    folder.mkdir()
    for i in range(100):
        soundfile.write(folder / f"{i}.wav", signal(random, 220500, 1), 22050, "PCM_16")
    paths = sorted(folder.iterdir())
    tool.run("bench", folder, 2)
    ours = max(float(tool.run("bench", folder, 20).stdout) for _ in range(3))
    theirs = 0
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(4):
            for path in paths:
                soundfile.read(path, dtype="float32")
        theirs = max(theirs, 4 * len(paths) / (time.perf_counter() - start))
    report.line("bench: 10 s WAV, one thread", ours > theirs,
                f"{ours:.0f} files/s, soundfile {theirs:.0f}, {ours / theirs:.1f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--bench", action="store_true")
    options = parser.parse_args()
    report, tool, random = Report(), Tool(options.tool), numpy.random.default_rng(1)
    print(f"soundfile {soundfile.__version__}, {soundfile.__libsndfile_version__}")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        compare_wav(report, tool, work, random)
        compare_others(report, tool, work, random)
        compare_writing(report, tool, work, random)
        if options.bench:
            bench(report, tool, work, random)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())

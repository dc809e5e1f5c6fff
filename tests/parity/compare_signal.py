"""Compares the signal work live with torchaudio, pyloudnorm and librosa on generated clips.
Run: compare_signal.py --tool build/bin/signal_tool --work FOLDER [--time]"""
import argparse
import itertools
import pathlib
import subprocess
import sys
import time

import numpy as np
import torch
import torchaudio.functional as F

import signal_reference as reference

RATES = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 192000)


class Comparison:
    def __init__(self, options):
        self.tool, self.work, self.jobs, self.failed = options.tool, pathlib.Path(options.work), [], 0

    def ask(self, name, words, wave, expected, allowed, difference=None):
        """`words` is the tool's line without its files; `difference(ours, expected)` defaults to the largest."""
        stem = self.work / f"{len(self.jobs)}"
        if wave is not None:
            wave.numpy().astype(np.float32).tofile(f"{stem}.in")
        self.jobs.append((name, f"{words} {stem}.in {stem}.out", f"{stem}.out", expected, allowed, difference))

    def run(self):
        lines = "\n".join(job[1] for job in self.jobs) + "\n"
        subprocess.run([self.tool], input=lines, text=True, check=True)
        for name, _, path, expected, allowed, difference in self.jobs:
            ours = torch.from_numpy(np.fromfile(path, np.float32))
            found = (difference or largest)(ours, expected)
            good = found <= allowed
            self.failed += not good
            print(f"{name} ... {'ok' if good else 'FAILED'} ({found:.2e}, allowed {allowed:.0e})", flush=True)


def largest(ours, expected):
    expected = expected.reshape(-1)
    if ours.numel() != expected.numel():
        return float("inf")
    return (ours - expected).abs().max().item() if ours.numel() else 0.0


def largest_but_length(samples, source, target):
    def difference(ours, expected):
        exact = -(-samples * target // source)
        if ours.numel() != exact or abs(expected.numel() - exact) > 1:
            return float("inf")
        common = min(exact, expected.numel())  # torchaudio rounds its length in float32
        return (ours[:common] - expected[:common]).abs().max().item()
    return difference


def add_resampling(comparison):
    for source, target in itertools.permutations(RATES, 2):
        for samples in (1, 16001):
            wave = reference.clip(samples, source, seed=source)
            comparison.ask(f"resample {source} to {target}, {samples} samples", f"resample {source} {target}", wave,
                           reference.resample(wave, source, target), 1e-5,
                           largest_but_length(samples, source, target))


def within_float32(name):
    """The largest difference in the log domain. Where a value's amplitude lies over 50 dB below the loudest of its
    frame (above the half of a lower source rate, say), an FFT in float32 resolves it to no better than 3e-7 of that
    loudest one: there the difference counts in proportion. torchaudio in float64 differs from torchaudio there too."""
    def difference(ours, expected):
        if ours.numel() != expected.numel():
            return float("inf")
        scale = 1.0 if name == "default" else 0.5  # logs of magnitudes, of powers
        below = scale * (expected.max(dim=0, keepdim=True).values - expected)
        allowance = torch.exp(below - np.log(10 ** 2.5)).clamp(min=1)
        return ((ours.view(expected.shape) - expected).abs() / allowance).max().item()
    return difference


def add_mels(comparison):
    for name in reference.FRONT_ENDS:
        target = reference.FRONT_END_RATE[name]
        comparison.ask(f"filters {name}", f"filters {name}", None, reference.filters(name), 0.0)
        for rate in (8000, 16000, 22050, 24000, 44100, 48000):
            samples = 3 * rate + 171
            wave = reference.clip(samples, rate, seed=rate)
            resampled = reference.resample(wave, rate, target)[:-(-samples * target // rate)]
            comparison.ask(f"mel {name} from {rate}", f"logs {rate} {name}", wave,
                           reference.log_mel(name, resampled), 1e-4, within_float32(name))
    wave = reference.clip(40001, 16000, seed=9)
    comparison.ask("mel speaker_encoder, instance norm", "mel 16000 speaker_encoder", wave,
                   reference.front_end("speaker_encoder", wave), 5e-4)


def add_the_rest(comparison):
    for rate in (8000, 11025, 16000, 22050, 44100, 48000):
        for gaps in (False, True):
            wave = reference.clip(5 * rate + 77, rate, seed=5, gaps=gaps)
            for judge, value in zip(("torchaudio", "pyloudnorm"), reference.loudness(wave, rate)):
                comparison.ask(f"loudness at {rate}, {'gaps' if gaps else 'steady'}, {judge}", f"loudness {rate}",
                               wave, torch.tensor([value]), 0.1)
    wave = reference.clip(16001, 16000)
    comparison.ask("preemphasis", "preemphasis", wave, reference.preemphasis(wave), 1e-6)
    for steps in (-7, -2, 3, 12):
        wave = reference.clip(5001, 1000, seed=6)
        comparison.ask(f"pitch shift by {steps}", f"pitch 1000 {steps}", wave, F.pitch_shift(wave, 1000, steps), 2e-3)

    def snr(wave):
        return lambda ours, expected: abs(10 * torch.log10(
            wave.double().square().sum() / (ours.double() - wave.double()).square().sum()).item() - expected)
    for decibels in (-5, 10, 40):
        wave = reference.clip(16001, 16000, seed=8)
        comparison.ask(f"noise at {decibels} dB", f"noise {decibels}", wave, decibels, 1e-2, snr(wave))
    try:
        import librosa
    except ImportError:
        print("trim ... not compared (no librosa)")
        return
    for quiet, top_db in ((3000, 20), (7001, 40), (0, 30)):
        wave = torch.cat([torch.zeros(quiet), reference.clip(9001, 22050), 1e-3 * reference.clip(5000, 22050)])
        _, (begin, end) = librosa.effects.trim(wave.numpy(), top_db=top_db)
        comparison.ask(f"trim after {quiet} samples at {top_db} dB", f"trim {top_db} 2048 512", wave,
                       torch.tensor([float(begin), float(end - begin)]), 0.0)


def print_times(comparison):
    torch.set_num_threads(1)
    for name in reference.FRONT_ENDS:
        rate = reference.FRONT_END_RATE[name]
        wave, transform = reference.clip(6 * rate, rate), reference.mel_transform(name)
        best = float("inf")
        for _ in range(30):
            begin = time.perf_counter()
            torch.log(torch.clamp(transform(wave), min=1e-5))
            best = min(best, time.perf_counter() - begin)
        source, target = comparison.work / "time.in", comparison.work / "time.out"
        wave.numpy().tofile(source)
        subprocess.run([comparison.tool], input=f"time {rate} {name} {source} {target}\n", text=True, check=True)
        ours = np.fromfile(target, np.float32)[0]
        print(f"{name}, 6 s, one thread: {ours:.0f} us, torchaudio {best * 1e6:.0f} us, {best * 1e6 / ours:.1f} times")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    comparison = Comparison(options)
    if options.time:
        print_times(comparison)
        return 0
    add_resampling(comparison)
    add_mels(comparison)
    add_the_rest(comparison)
    comparison.run()
    print(f"{len(comparison.jobs) - comparison.failed} passed, {comparison.failed} failed")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())

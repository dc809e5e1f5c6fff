#!/usr/bin/env python3
"""What a run of all stages reached: the first, the best and the last validation figures of every stage, and beside the
decoder's copy-synthesis what Griffin-Lim makes of the same clips' mels. Markdown on standard output. Run it with
the Python of scripts/voice/judges.sh.

    figures.py RUN --recordings CORPUS/unseen
"""
import argparse
import json
import math
import pathlib
import sys

import torch
import torchaudio

from judge import load, read_set

RATE = 24000  # the decoder's
HIGHER_IS_BETTER = {"perplexity", "codes_used", "speaker_similarity", "accuracy", "audio_accuracy", "text_accuracy",
                    "stop_accuracy"}


def stage_rows(metrics: pathlib.Path) -> list[str]:
    curves: dict[str, list[tuple[int, float]]] = {}
    for line in metrics.read_text().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:  # cut off when the machine went down
            continue
        if entry.get("split") != "val":
            continue
        for name, value in {"loss": entry.get("loss"), **entry.get("terms", {})}.items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                curves.setdefault(name, []).append((entry["step"], value))
    rows = []
    for name, values in curves.items():
        best = (max if name in HIGHER_IS_BETTER else min)(values, key=lambda pair: pair[1])
        rows.append(f"| {metrics.parent.name} | {name} | {values[0][1]:.4g} (step {values[0][0]}) | "
                    f"{best[1]:.4g} (step {best[0]}) | {values[-1][1]:.4g} (step {values[-1][0]}) |")
    return rows


class Apart:
    """Mel distance (mean |difference| of log mels) and mel-cepstral distortion, as the decoder is measured."""

    def __init__(self) -> None:
        self.options = dict(sample_rate=RATE, n_mels=80, f_max=RATE / 2, norm="slaney", mel_scale="slaney")
        self.to_mel = torchaudio.transforms.MelSpectrogram(n_fft=1024, hop_length=256, power=1, **self.options)
        order, place = torch.arange(1, 14)[:, None], (torch.arange(80) + 0.5)[None]
        self.cosines = torch.cos(order * place * math.pi / 80) * 2 / 80
        self.distances: list[float] = []
        self.distortions: list[float] = []

    def add(self, one: torch.Tensor, other: torch.Tensor) -> None:
        first, second = self.to_mel(one), self.to_mel(other)
        frames = min(first.shape[1], second.shape[1])
        apart = first[:, :frames].clamp_min(1e-5).log() - second[:, :frames].clamp_min(1e-5).log()
        self.distances.append(apart.abs().mean().item())
        self.distortions.append((10 / math.log(10) * (2 * (self.cosines @ apart).square().sum(0)).sqrt()).mean().item())

    def words(self) -> str:
        count = max(1, len(self.distances))
        return f"mel_distance {sum(self.distances) / count:.4g}, mcd_db {sum(self.distortions) / count:.4g}"


def griffin_lim_row(recordings: pathlib.Path, most: int) -> str:
    apart = Apart()
    to_spectrum = torchaudio.transforms.InverseMelScale(n_stft=513, driver="gelsd", **apart.options)
    to_wave = torchaudio.transforms.GriffinLim(n_fft=1024, hop_length=256, power=1, n_iter=60)
    for path, _ in read_set(recordings, most):
        wave = load(path, RATE)
        apart.add(wave, to_wave(to_spectrum(apart.to_mel(wave))))
    return f"\nGriffin-Lim (60 rounds) of the mels of {len(apart.distances)} recordings: {apart.words()}."


def copies_row(samples: pathlib.Path) -> str:
    """The decoder's copies of validation clips, and Griffin-Lim of the same clips' mels."""
    steps = sorted(samples.glob("step-*"), key=lambda folder: int(folder.name[5:]))
    decoder, griffin_lim = Apart(), Apart()
    for recorded in sorted(steps[-1].glob("*_recording.wav")) if steps else []:
        recording = load(recorded, RATE)
        for kind, apart in (("decoder", decoder), ("griffin_lim", griffin_lim)):
            made = recorded.with_name(recorded.name.replace("_recording", f"_{kind}"))
            if made.exists():
                apart.add(recording, load(made, RATE))
    if not decoder.distances:
        return "\nThe decoder's run has no samples."
    return (f"\nCopies of {len(decoder.distances)} clips that were heard behind {steps[-1].name}: the decoder "
            f"{decoder.words()}; Griffin-Lim of the same clips' mels {griffin_lim.words()}.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--recordings", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=20, help="recordings for Griffin-Lim (default 20)")
    options = parser.parse_args()
    files = [options.run / stage / "metrics.jsonl" for stage in ("dvae", "gpt", "decoder")]
    files = [file for file in files if file.exists()] or sorted(options.run.glob("**/metrics.jsonl"))
    if not files:
        print(f"figures: error: there is no metrics.jsonl in `{options.run}`.", file=sys.stderr)
        return 1
    print("| stage | on the validation clips | first | best | last |\n|---|---|---|---|---|")
    for file in files:
        print("\n".join(stage_rows(file)) or f"| {file.parent.name} | no validation yet | | | |")
    if (options.run / "decoder").exists():
        print(copies_row(options.run / "decoder" / "samples"))
    if options.recordings:
        print(griffin_lim_row(options.recordings, options.most))
    return 0


if __name__ == "__main__":
    sys.exit(main())

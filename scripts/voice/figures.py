#!/usr/bin/env python3
"""What a run of all stages reached: the first, the best and the last validation figures of every stage, and beside the
decoder's copy-synthesis what Griffin-Lim makes of the same recordings' mels. Markdown on standard output. Run it with
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


def griffin_lim_row(recordings: pathlib.Path, most: int) -> str:
    """Mel distance (mean |difference| of log mels) and mel-cepstral distortion, as the decoder is measured."""
    options = dict(sample_rate=RATE, n_mels=80, f_max=RATE / 2, norm="slaney", mel_scale="slaney")
    to_mel = torchaudio.transforms.MelSpectrogram(n_fft=1024, hop_length=256, power=1, **options)
    to_spectrum = torchaudio.transforms.InverseMelScale(n_stft=513, driver="gelsd", **options)
    to_wave = torchaudio.transforms.GriffinLim(n_fft=1024, hop_length=256, power=1, n_iter=60)
    order, place = torch.arange(1, 14)[:, None], (torch.arange(80) + 0.5)[None]
    cosines = torch.cos(order * place * math.pi / 80) * 2 / 80
    distances, distortions = [], []
    for path, _ in read_set(recordings, most):
        wave = load(path, RATE)
        mel = to_mel(wave)
        back = to_mel(to_wave(to_spectrum(mel)))
        frames = min(mel.shape[1], back.shape[1])
        apart = mel[:, :frames].clamp_min(1e-5).log() - back[:, :frames].clamp_min(1e-5).log()
        distances.append(apart.abs().mean().item())
        distortions.append((10 / math.log(10) * (2 * (cosines @ apart).square().sum(0)).sqrt()).mean().item())
    count = len(distances)
    return (f"\nGriffin-Lim (60 rounds) of the mels of {count} recordings: mel_distance {sum(distances) / count:.4g}, "
            f"mcd_db {sum(distortions) / count:.4g}.")


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
    if options.recordings:
        print(griffin_lim_row(options.recordings, options.most))
    return 0


if __name__ == "__main__":
    sys.exit(main())

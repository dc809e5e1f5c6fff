"""Makes tests/audio/signal/fixtures: what torchaudio gives for short clips, as raw float32.
Run: make_signal_fixtures.py FOLDER      (torch and torchaudio 2.11.0, pyloudnorm 0.1.1 or newer)"""
import pathlib
import sys

import numpy as np
import torch
import torchaudio
import torchaudio.functional as F

import signal_reference as reference

RESAMPLED = [(16000, 22050, 501), (22050, 16000, 333), (8000, 22050, 200), (44100, 22050, 777), (48000, 22050, 901),
             (24000, 22050, 450), (11025, 48000, 101), (192000, 16000, 5001)]


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)

    def write(name, values):
        values.detach().to(torch.float32).contiguous().numpy().tofile(folder / f"{name}.f32")

    for source, target, samples in RESAMPLED:
        write(f"resample_{source}_{target}_{samples}",
              reference.resample(reference.clip(samples, source), source, target))
    for name in reference.FRONT_ENDS:
        wave = reference.clip(3001, reference.FRONT_END_RATE[name], seed=1)
        write(f"mel_{name}", reference.front_end(name, wave))
        bank = reference.filters(name).t()
        write(f"filters_{name}", bank[bank != 0])
    # numpy reflects as often as needed where torchaudio refuses.
    short = reference.clip(300, 22050, seed=2)
    padded = torch.from_numpy(np.pad(short.numpy(), (512, 512), "reflect"))
    transform = reference.mel_transform("default")
    transform.spectrogram.center = False
    write("mel_default_short", torch.log(torch.clamp(transform(padded), min=1e-5)))
    write("preemphasis", reference.preemphasis(reference.clip(500, 16000)))
    measured = []
    for rate in (8000, 16000, 22050, 48000):
        measured.extend(reference.loudness(reference.clip(4 * rate + 123, rate, seed=3, gaps=True), rate))
    write("loudness", torch.tensor(measured))
    shifted = [F.pitch_shift(reference.clip(3000, 1000, seed=4), 1000, steps) for steps in (-5, 4)]
    write("pitch", torch.stack(shifted))
    (folder / "versions.txt").write_text(f"torch {torch.__version__}\ntorchaudio {torchaudio.__version__}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

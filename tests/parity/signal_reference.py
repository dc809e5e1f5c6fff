"""What torchaudio, pyloudnorm and librosa say, and the clips they are asked about: shared by
make_signal_fixtures.py and compare_signal.py."""
import math

import numpy as np
import torch
import torchaudio
import torchaudio.functional as F

FRONT_ENDS = ("default", "xtts_dvae", "xtts_conditioning", "xtts_conditioning_v1", "speaker_encoder")
FRONT_END_RATE = {name: 16000 if name == "speaker_encoder" else 22050 for name in FRONT_ENDS}


def clip(samples, rate, seed=0, gaps=False):
    """Two tones in noise, as tests/audio/signal/clips.h makes them. `gaps`: every third half second is quiet."""
    i = np.arange(samples, dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = (i + np.uint64(seed << 32)) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    noise = (x >> np.uint64(40)).astype(np.float64) / (1 << 23) - 1
    t = np.arange(samples, dtype=np.float64) / rate
    wave = 0.3 * np.sin(2 * math.pi * 220 * t) + 0.1 * np.sin(2 * math.pi * 3000.5 * t) + 0.05 * noise
    if gaps:
        wave = np.where(np.arange(samples) // (rate // 2) % 3 == 2, wave * 0.002, wave)
    return torch.from_numpy(wave.astype(np.float32))


def mel_transform(name):
    make = torchaudio.transforms.MelSpectrogram
    if name == "default":
        return make(22050, 1024, 1024, 256, 0.0, 11025.0, n_mels=80, power=1.0, norm="slaney", mel_scale="slaney")
    if name == "speaker_encoder":
        return make(16000, 512, 400, 160, n_mels=64, window_fn=torch.hamming_window)
    n_fft, hop, window = {"xtts_dvae": (1024, 256, 1024), "xtts_conditioning": (2048, 256, 1024),
                          "xtts_conditioning_v1": (4096, 1024, 4096)}[name]
    return make(22050, n_fft, window, hop, 0.0, 8000.0, n_mels=80, power=2.0, norm="slaney")


def preemphasis(wave):
    wide = torch.nn.functional.pad(wave[None, None], (1, 0), "reflect")
    return torch.nn.functional.conv1d(wide, torch.tensor([[[-0.97, 1.0]]]))[0, 0]


def log_mel(name, wave):
    """[mels, frames] before the speaker encoder's instance norm."""
    if name == "speaker_encoder":
        return torch.log(mel_transform(name)(preemphasis(wave)) + 1e-6)
    return torch.log(torch.clamp(mel_transform(name)(wave), min=1e-5))


def front_end(name, wave):
    logs = log_mel(name, wave)
    return torch.nn.functional.instance_norm(logs[None])[0] if name == "speaker_encoder" else logs


def filters(name):
    return mel_transform(name).mel_scale.fb


def resample(wave, source, target):
    return F.resample(wave, source, target)


def loudness(wave, rate):
    """By torchaudio and by pyloudnorm."""
    import pyloudnorm
    theirs = F.loudness(wave.double()[None], rate).item()
    return theirs, pyloudnorm.Meter(rate).integrated_loudness(wave.double().numpy())

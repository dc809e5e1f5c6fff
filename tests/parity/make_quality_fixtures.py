"""Makes tests/train/fixtures/quality.safetensors: measures of quality by numpy and scipy on random inputs. Run with
the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_quality_fixtures.py

numpy 2.x and scipy 1.x in float64; the versions used are in the file's metadata.
"""
import pathlib

import numpy as np
import scipy
import scipy.fft
import scipy.spatial.distance as distance
import scipy.stats
from safetensors.numpy import save_file

random = np.random.default_rng(11)
DECIBELS = 10 / np.log(10) * np.sqrt(2)


def cepstrum(log_mels, power):
    """log magnitude = sum of c_k cos(k x): scipy's DCT-II is 2 sum of x cos."""
    return scipy.fft.dct(log_mels, type=2, axis=-2)[..., 1:14, :] / (log_mels.shape[-2] * power)


def warped(a, b):
    """Dynamic time warping by its definition, path and all."""
    costs = distance.cdist(cepstrum(a, 2).T, cepstrum(b, 2).T)
    total = np.full((costs.shape[0] + 1, costs.shape[1] + 1), np.inf)
    total[0, 0] = 0
    for i in range(costs.shape[0]):
        for j in range(costs.shape[1]):
            total[i + 1, j + 1] = costs[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    i, j = costs.shape
    steps = 0
    while (i, j) != (0, 0):
        steps += 1
        i, j = min([(i - 1, j - 1), (i - 1, j), (i, j - 1)], key=lambda p: total[p] if min(p) >= 0 else np.inf)
    return DECIBELS * total[-1, -1] / steps


first = (random.normal(size=(3, 80, 23)) * 2 - 4).astype(np.float32)
second = (first + random.normal(size=first.shape) * 0.7).astype(np.float32)
lengths = np.array([23, 9, 0])
difference = cepstrum(first.astype(np.float64), 2) - cepstrum(second.astype(np.float64), 2)
frames = DECIBELS * np.sqrt((difference ** 2).sum(1))
aligned = [frames[row, :length].mean() if length else 0.0 for row, length in enumerate(lengths)]

slow = np.repeat(first[0], random.integers(1, 4, size=23), axis=1).astype(np.float32)
slow += (random.normal(size=slow.shape) * 0.3).astype(np.float32)

codes = random.zipf(1.5, size=500)
codes = np.where(codes > 40, -1, codes - 1)  # -1: not counted
counts = np.bincount(codes[codes >= 0], minlength=64).astype(np.float64)

voices = random.normal(size=(2, 4, 32)).astype(np.float32)
similar = [1 - distance.cosine(a, b) for a, b in zip(*voices.astype(np.float64))]

logits = random.normal(size=(2, 11, 9)).astype(np.float32)
targets = random.integers(0, 11, size=(2, 9))
targets[:, :5] = logits.argmax(1)[:, :5]  # some right ones
targets[1, 3:7] = -1
hits = sum(logits[b, :, t].argmax() == targets[b, t] for b in range(2) for t in range(9) if targets[b, t] >= 0)

tensors = {
    "first": first, "second": second, "lengths": lengths, "slow": slow,
    "cepstrum.power": cepstrum(first.astype(np.float64), 2),
    "cepstrum.magnitude": cepstrum(first.astype(np.float64), 1),
    "distortion.aligned": np.array(aligned),
    "distortion.warped": np.array([warped(first[0].astype(np.float64), slow.astype(np.float64)),
                                   warped(first[0].astype(np.float64), second[1].astype(np.float64))]),
    "codes": codes.astype(np.int64), "codes.counts": counts,
    "codes.measures": np.array([(counts > 0).mean(), np.exp(scipy.stats.entropy(counts))]),
    "voices.a": voices[0], "voices.b": voices[1], "voices.similar": np.array(similar),
    "logits": logits, "targets": targets.astype(np.int64),
    "hits": np.array([hits, (targets >= 0).sum()], dtype=np.float64),
}
tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
place = pathlib.Path(__file__).parent.parent / "train" / "fixtures" / "quality.safetensors"
save_file(tensors, str(place), metadata={"made_by": "make_quality_fixtures.py", "numpy": np.__version__,
                                         "scipy": scipy.__version__})
print(place, place.stat().st_size, "bytes")

"""Makes tests/train/fixtures/quality.safetensors: measures of quality by numpy and scipy on random inputs. Run with
the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_quality_fixtures.py

numpy 2.x and scipy 1.x in float64; the versions used are in the file's metadata.
"""
import pathlib

import numpy as np
import scipy
import scipy.fft
import scipy.stats
from safetensors.numpy import save_file

random = np.random.default_rng(11)
DECIBELS = 10 / np.log(10) * np.sqrt(2)


def cepstrum(log_mels):
    """log magnitude = sum of c_k cos(k x): scipy's DCT-II is 2 sum of x cos."""
    return scipy.fft.dct(log_mels, type=2, axis=-2)[..., 1:14, :] / log_mels.shape[-2]


first = (random.normal(size=(3, 80, 23)) * 2 - 4).astype(np.float32)
second = (first + random.normal(size=first.shape) * 0.7).astype(np.float32)
lengths = np.array([23, 9, 1])
difference = cepstrum(first.astype(np.float64)) - cepstrum(second.astype(np.float64))
frames = DECIBELS * np.sqrt((difference ** 2).sum(1))
aligned = [frames[row, :length].mean() for row, length in enumerate(lengths)]

codes = random.zipf(1.5, size=500)
codes = np.where(codes > 40, -1, codes - 1)  # -1: not counted
counts = np.bincount(codes[codes >= 0], minlength=64).astype(np.float64)

tensors = {
    "first": first, "second": second, "lengths": lengths, "distortion": np.array(aligned),
    "codes": codes.astype(np.int64), "codes.counts": counts,
    "codes.measures": np.array([(counts > 0).mean(), np.exp(scipy.stats.entropy(counts))]),
}
tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
place = pathlib.Path(__file__).parent.parent / "train" / "fixtures" / "quality.safetensors"
save_file(tensors, str(place), metadata={"made_by": "make_quality_fixtures.py", "numpy": np.__version__,
                                         "scipy": scipy.__version__})
print(place, place.stat().st_size, "bytes")

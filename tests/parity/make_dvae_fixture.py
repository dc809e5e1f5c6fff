"""Makes tests/models/xtts/fixtures/dvae.safetensors: a narrow DVAE of coqui-tts with random weights, mels, and the
codes it gives for them. Run with the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_dvae_fixture.py

coqui-tts 0.28.0, torch 2.11.0, CPU, float32. Random weights: nothing of a released model is in it.
"""
import pathlib

import torch
from safetensors.torch import save_file
from TTS.tts.layers.xtts.dvae import DiscreteVAE

torch.manual_seed(5)
dvae = DiscreteVAE(channels=80, normalization=None, positional_dims=1, num_tokens=64, codebook_dim=16, hidden_dim=16,
                   num_resnet_blocks=3, kernel_size=3, num_layers=2, use_transposed_convs=False).eval()
state = {name: tensor.clone().contiguous() for name, tensor in dvae.state_dict().items()
         if name.startswith("encoder.") or name == "codebook.embed"}
stats = torch.rand(80) + 0.5
tensors = dict(state, mel_stats=stats)
for frames in (1, 7, 49):
    mels = torch.randn(2, 80, frames) * 2 - 4
    with torch.no_grad():
        tensors[f"test.mels.{frames}"] = mels
        tensors[f"test.codes.{frames}"] = dvae.get_codebook_indices(mels / stats.view(1, 80, 1))
place = pathlib.Path(__file__).parent.parent / "models" / "xtts" / "fixtures" / "dvae.safetensors"
place.parent.mkdir(parents=True, exist_ok=True)
save_file(tensors, str(place), metadata={"made_by": "make_dvae_fixture.py", "coqui-tts": "0.28.0"})
print(place, place.stat().st_size, "bytes")

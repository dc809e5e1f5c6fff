"""Makes tests/train/fixtures/dvae_training.safetensors: three training steps of coqui-tts's DiscreteVAE at a narrow
size, the codebook moved by its own Quantize in train mode (decay 0.99, eps 1e-5), the rest by plain gradient descent.
Run with the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_dvae_training_fixtures.py

coqui-tts 0.28.0, torch 2.11.0, CPU, float32. Weights and inputs are not stored: both sides compute them from their names
(tests/models/xtts_values.h has the same rules). Two starts: `fresh` as coqui-tts makes a codebook (counts of 0, so a code
nobody chose is thrown far away at once), `settled` with counts.
"""
import pathlib

import torch
from make_xtts_fixtures import VERSIONS, values, weight
from safetensors.torch import save_file
from TTS.tts.layers.xtts.dvae import DiscreteVAE

RATE, COMMITMENT, STEPS, CODES, WIDTH = 0.02, 0.25, 3, 48, 12


def train(start, out):
    dvae = DiscreteVAE(channels=80, normalization=None, positional_dims=1, num_tokens=CODES, codebook_dim=WIDTH,
                       hidden_dim=12, num_resnet_blocks=3, kernel_size=3, num_layers=2, use_transposed_convs=False)
    state = {name: weight(name, tuple(tensor.shape)) for name, tensor in dvae.state_dict().items()
             if name.startswith(("encoder.", "decoder.")) or name == "codebook.embed"}
    state["codebook.embed"] *= 0.3  # among the vectors: many codes are chosen
    if start == "fresh":
        state["codebook.cluster_size"] = torch.zeros(CODES)
        state["codebook.embed_avg"] = state["codebook.embed"].clone()
    else:
        state["codebook.cluster_size"] = values("sizes", (CODES,), 1.0, 2.0)
        state["codebook.embed_avg"] = state["codebook.embed"] * state["codebook.cluster_size"]
    dvae.load_state_dict(state, strict=False)
    dvae.train()
    losses = []
    for step in range(STEPS):
        mels = values(f"mels {step}", (2, 80, 24), 2.0, -1.0)
        with torch.no_grad():
            vectors = dvae.encoder(mels).permute(0, 2, 1).reshape(-1, WIDTH)
            nearest = torch.cdist(vectors.double(), dvae.codebook.embed.t().double()).topk(2, largest=False)
            margin = (nearest.values[:, 1] - nearest.values[:, 0]).min().item()
            print(start, step, "codes used", nearest.indices[:, 0].unique().numel(), "smallest margin", margin)
            assert margin > 1e-4
        reconstruction, commitment, _ = dvae(mels)
        loss = reconstruction.mean() + COMMITMENT * commitment
        dvae.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in dvae.parameters():
                parameter -= RATE * parameter.grad
        losses.append([loss.item(), reconstruction.mean().item(), commitment.item()])
        out[f"{start}.{step}.embed"] = dvae.codebook.embed.clone()
        out[f"{start}.{step}.cluster_size"] = dvae.codebook.cluster_size.clone()
        out[f"{start}.{step}.embed_avg"] = dvae.codebook.embed_avg.clone()
    out[f"{start}.losses"] = torch.tensor(losses)
    print(losses)
    for name in ("encoder.0.0.weight", "encoder.5.bias", "decoder.0.weight", "decoder.5.0.conv.weight"):
        out[f"{start}.after.{name}"] = dict(dvae.named_parameters())[name].detach().clone()


tensors = {}
for start in ("fresh", "settled"):
    train(start, tensors)
place = pathlib.Path(__file__).parent.parent / "train" / "fixtures" / "dvae_training.safetensors"
place.parent.mkdir(parents=True, exist_ok=True)
save_file(tensors, str(place), metadata=dict(VERSIONS, made_by="make_dvae_training_fixtures.py"))
print(place, place.stat().st_size, "bytes")

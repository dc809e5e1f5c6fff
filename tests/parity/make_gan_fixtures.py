"""Makes tests/models/xtts/fixtures/gan.safetensors: what coqui-tts's HiFi-GAN discriminators and vocoder losses give at
narrow sizes. Run with the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_gan_fixtures.py

coqui-tts 0.28.0, torch 2.11.0, CPU, float32. Weights and inputs are not stored: both sides compute them from their names
(tests/models/xtts_values.h has the same rules). The layers of coqui-tts's classes are replaced by narrower ones of the
same kernels, strides and paddings; what passes through them is its own code. The first scale keeps its spectral norm.
"""
import math

import torch
from make_xtts_fixtures import FIXTURES, VERSIONS, values, weight
from safetensors.torch import save_file
from torch.nn.utils import spectral_norm
from torch.nn.utils.parametrizations import weight_norm
from TTS.vocoder.layers.losses import (L1SpecLoss, MelganFeatureLoss, MSEDLoss, MSEGLoss, MultiScaleSTFTLoss,
                                       _apply_D_loss, _apply_G_adv_loss)
from TTS.vocoder.models.hifigan_discriminator import HifiganDiscriminator

WIDTH = 64


def narrow(layer, inputs, last):
    outputs = 1 if last else layer.out_channels * WIDTH // 1024
    groups = math.gcd(layer.groups, math.gcd(inputs, outputs))
    made = type(layer).__mro__[1] if type(layer).__name__.startswith("Parametrized") else type(layer)
    return made(inputs, outputs, layer.kernel_size, layer.stride, padding=layer.padding, groups=groups), outputs


def fill(layer, name, spectral):
    shape = tuple(layer.weight.shape)
    direction = weight(f"{name}parametrizations.weight.original1", shape)
    layer.bias.data = weight(f"{name}bias", (shape[0],))
    if spectral:
        layer = spectral_norm(layer)
        u = values(f"{name}u", (shape[0],))
        u = u / u.norm()
        v = direction.flatten(1).t() @ u
        layer.weight_orig.data, layer.weight_u.data, layer.weight_v.data = direction, u, v / v.norm()
    else:
        layer = weight_norm(layer)
        layer.parametrizations.weight.original1.data = direction
        ones = (shape[0],) + (1,) * (len(shape) - 1)
        layer.parametrizations.weight.original0.data = weight(f"{name}parametrizations.weight.original0", ones)
    return layer


def discriminators():
    whole = HifiganDiscriminator()
    for kind, family in (("mpd", whole.mpd), ("msd", whole.msd)):
        for i, one in enumerate(family.discriminators):
            inputs, spectral = 1, kind == "msd" and i == 0
            for j, old in enumerate(one.convs):
                made, inputs = narrow(old, inputs, last=False)
                one.convs[j] = fill(made, f"{kind}.discriminators.{i}.convs.{j}.", spectral)
            made, _ = narrow(one.conv_post, inputs, last=True)
            one.conv_post = fill(made, f"{kind}.discriminators.{i}.conv_post.", spectral)
    return whole.eval()


def main():
    torch.manual_seed(0)
    tensors = {}
    judge = discriminators()
    real, fake = values("real", (2, 1, 1500), 0.5), values("generated", (2, 1, 1500), 0.5)
    with torch.no_grad():
        (real_scores, real_maps), (fake_scores, fake_maps) = judge(real), judge(fake)
        for d, (scores, maps) in enumerate(zip(real_scores, real_maps)):
            tensors[f"scores.{d}"] = scores
            for i, one in enumerate(maps):  # the whole maps would be large
                tensors[f"maps.{d}.{i}.first"] = one[:, 0].flatten(1)[:, :40].contiguous()
                tensors[f"maps.{d}.{i}.mean"] = one.abs().mean()
        tensors["loss.discriminator"] = _apply_D_loss(fake_scores, real_scores, MSEDLoss())[0]
        tensors["loss.adversarial"] = _apply_G_adv_loss(fake_scores, MSEGLoss())
        tensors["loss.feature"] = MelganFeatureLoss()(fake_maps, real_maps)
        a, b = values("a", (2, 1, 9001), 0.5), values("b", (2, 1, 9001), 0.3)
        tensors["loss.mel"] = L1SpecLoss(24000, 1024, 256, 1024, 0.0, 12000.0, 80)(a, b)
        for row in range(2):  # its norms run over the whole batch
            magnitude, convergence = MultiScaleSTFTLoss()(a[row:row + 1], b[row:row + 1])
            tensors[f"loss.stft.{row}"] = magnitude + convergence
    tensors = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    place = FIXTURES / "gan.safetensors"
    save_file(tensors, str(place), metadata=dict(VERSIONS, made_by="make_gan_fixtures.py"))
    print(place, place.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

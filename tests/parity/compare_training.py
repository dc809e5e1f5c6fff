#!/usr/bin/env python3
"""Compares 200 steps of GPT training with a loop on coqui-tts's own GPT and torch's AdamW.

    python tests/parity/compare_training.py BUILD [--steps 200] [--write FOLDER]

The same folder (make_xtts_folders.py, size small), the same made batches, float32 on the CPU with one thread, no
dropout. Losses of every step must agree within 1e-4, relative. `--write` leaves the model, batches and expected losses
in a folder, for the part `parity` of scripts/gpu-check.sh on a machine where coqui-tts is not installed.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file

import make_xtts_folders as made
from xtts_reference import Reference

# Six times Coqui's. At 3e-4 both runs learn the batches by heart, and the last bits of the first steps decide by which
# road: then even two orders of summation part after 30 steps.
LEARNING_RATE = 3e-5


def make_batches(gpt, count=6):
    """Clips of different lengths, with text ids, codes and conditioning of their own."""
    generator = torch.Generator().manual_seed(5)

    def draw(low, high, *shape):
        return torch.randint(low, high, shape, generator=generator)

    batches = []
    for _ in range(count):
        rows = 3
        text_lengths, code_lengths = draw(4, 24, rows), draw(12, 60, rows)
        text = draw(5, gpt.number_text_tokens - 2, rows, int(text_lengths.max()))
        codes = draw(0, gpt.start_audio_token, rows, int(code_lengths.max()))
        for row in range(rows):
            text[row, text_lengths[row]:] = 0
            codes[row, code_lengths[row]:] = 0
        mels = torch.randn(rows, 80, 70, generator=generator) * 0.3
        batches.append({"text": text, "text_lengths": text_lengths, "codes": codes, "code_lengths": code_lengths,
                        "mels": mels})
    return batches


def parameter_groups(gpt):
    """Weight decay as coqui-tts's trainer has it: none for biases, norms and embeddings."""
    spared = (torch.nn.LayerNorm, torch.nn.GroupNorm, torch.nn.Embedding)
    without = set()
    for name, module in gpt.named_modules():
        for key, _ in module.named_parameters(recurse=False):
            if isinstance(module, spared) or key == "bias":
                without.add(f"{name}.{key}" if name else key)
    named = [(name, value) for name, value in gpt.named_parameters() if value.requires_grad]
    return [{"params": [value for name, value in named if name not in without], "weight_decay": 1e-2},
            {"params": [value for name, value in named if name in without], "weight_decay": 0.0}]


def train(gpt, batches, steps):
    gpt.eval()  # no dropout; gradients are the same
    optimizer = torch.optim.AdamW(parameter_groups(gpt), lr=LEARNING_RATE, betas=(0.9, 0.96), eps=1e-8)
    losses = []
    for step in range(steps):
        batch = batches[step % len(batches)]
        optimizer.zero_grad()
        text, mel, _ = gpt(batch["text"], batch["text_lengths"], batch["codes"].clone(),
                           batch["code_lengths"] * 1024, cond_mels=batch["mels"].unsqueeze(1))
        (0.01 * text + mel).backward()
        optimizer.step()
        losses.append((float(text.detach()), float(mel.detach())))
    return losses


def write_model(folder, copy):
    """What training does not read is zero, or left out, so that the copy packs small."""
    copy.mkdir(exist_ok=True)
    for name in ("config.json", "vocab.json", "mel_stats.pth"):
        shutil.copy(folder / name, copy / name)
    whole = torch.load(folder / "model.pth", weights_only=False)  # made by make_xtts_folders.py
    for name, tensor in whole["model"].items():
        if "hifigan_decoder." in name:
            tensor.zero_()
    torch.save(whole, copy / "model.pth")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = made.folders(("small",))["small"]
    gpt = Reference(folder).gpt
    batches = make_batches(gpt)
    with tempfile.TemporaryDirectory() as work:
        work = options.write or pathlib.Path(work)
        work.mkdir(parents=True, exist_ok=True)
        tensors = {f"{at}/{name}": value.contiguous() for at, batch in enumerate(batches)
                   for name, value in batch.items()}
        save_file(tensors, work / "batches.safetensors")
        if options.write:
            write_model(folder, work / "model")
        expected = train(gpt, batches, options.steps)
        (work / "losses.json").write_text(json.dumps(expected))
        run = subprocess.run([options.build / "bin" / "parity_train", folder, work / "batches.safetensors",
                              str(options.steps), str(LEARNING_RATE)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"parity_train failed: {run.stderr}")
    found = [tuple(map(float, line.split())) for line in run.stdout.splitlines()]
    worst = [0.0, 0.0]
    for ours, theirs in zip(found, expected, strict=True):
        worst = [max(w, abs(a - b) / abs(b)) for w, a, b in zip(worst, ours, theirs)]
    good = max(worst) <= 1e-4
    print(f"{'ok  ' if good else 'FAIL'} {options.steps} steps against coqui-tts and torch's AdamW: text loss "
          f"{expected[0][0]:.4f} -> {expected[-1][0]:.4f}, mel loss {expected[0][1]:.4f} -> {expected[-1][1]:.4f}, "
          f"largest relative differences {worst[0]:.1e}, {worst[1]:.1e} (at most 1e-4)")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

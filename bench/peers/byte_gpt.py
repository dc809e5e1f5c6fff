"""The byte GPT once more, in plain PyTorch: the peer of `make bench` and the judge of `make parity`.

Names and shapes are those of Tandem's checkpoints, so a model.safetensors loads as it is. As a program it
trains on a text and prints one JSON object with the tokens per second of every step:

  python bench/peers/byte_gpt.py --text LICENSE --size tiny --batch-size 16 --steps 50 --threads 2
"""
import argparse
import json
import math
import pathlib
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZES = {  # layers, width, heads, context
    "tiny": (2, 64, 4, 64),
    "small": (4, 128, 4, 128),
    "normal": (6, 256, 8, 256),
    "big": (12, 512, 8, 512),
}
BETAS, EPSILON, WEIGHT_DECAY, LARGEST_NORM = (0.9, 0.96), 1e-8, 0.01, 1.0
MASK = (1 << 64) - 1


def mix_bits(x):
    """SplitMix64's finaliser."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hash_text(text):
    value = 0xCBF29CE484222325  # FNV-1a
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return mix_bits(value)


def counted_below(bound, seed, purpose, index, count):
    draw = mix_bits(mix_bits(mix_bits(mix_bits(seed) ^ hash_text(purpose)) ^ index) ^ count)
    return draw * bound >> 64


class Corpus:
    """Windows of a text's bytes; the last tenth is held out."""

    def __init__(self, path, context):
        self.text = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()), dtype=torch.uint8)
        self.context = context
        self.train_bytes = len(self.text) - len(self.text) // 10

    def windows(self, starts):
        places = torch.tensor(starts).unsqueeze(1) + torch.arange(self.context + 1)
        taken = self.text[places].long()
        return taken[:, :-1].contiguous(), taken[:, 1:].contiguous()

    def train_batch(self, seed, index, size):
        choices = self.train_bytes - self.context
        return self.windows([counted_below(choices, seed, "byte window", index, i) for i in range(size)])

    def validation(self):
        count = max(1, (len(self.text) - self.train_bytes - 1) // self.context)
        return self.windows([self.train_bytes + i * self.context for i in range(count)])


def attend_in_steps(q, k, v):
    """Attention as the books write it, not through the fused operator."""
    places = q.size(-2)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    later = torch.ones(places, places, dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(-1) @ v


def attend_fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Block(nn.Module):
    def __init__(self, width, heads, attend):
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.attend = heads, attend

    def forward(self, x):
        batch, places, width = x.shape
        q, k, v = (part.view(batch, places, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm_attention(x)).split(width, -1))
        x = x + self.project(self.attend(q, k, v).transpose(1, 2).reshape(batch, places, width))
        return x + self.contract(F.gelu(self.expand(self.norm_mlp(x)), approximate="tanh"))


class ByteGpt(nn.Module):
    def __init__(self, size, attend=attend_fused):
        super().__init__()
        layers, width, heads, context = SIZES[size]
        self.byte_embedding = nn.Parameter(0.02 * torch.randn(256, width))
        self.place_embedding = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList(Block(width, heads, attend) for _ in range(layers))
        self.final_norm = nn.LayerNorm(width)

    def loss(self, tokens, targets):
        x = F.embedding(tokens, self.byte_embedding) + self.place_embedding[: tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.final_norm(x), self.byte_embedding)
        return F.cross_entropy(logits.view(-1, 256), targets.view(-1))


def make_optimizer(model, learning_rate, **kind):
    return torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=BETAS, eps=EPSILON,
                             weight_decay=WEIGHT_DECAY, **kind)


def train_step(model, optimizer, tokens, targets):
    """Returns the loss and the norm of its gradient before clipping."""
    loss = model.loss(tokens, targets)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item(), norm.item()


def main():
    parser = argparse.ArgumentParser(description="Train the byte GPT with PyTorch, eager mode.")
    parser.add_argument("--text", required=True)
    parser.add_argument("--size", default="tiny", choices=SIZES)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    corpus = Corpus(options.text, SIZES[options.size][3])
    model = ByteGpt(options.size)
    optimizer = make_optimizer(model, 1e-3, fused=True)
    rates, loss = [], math.nan
    for step in range(options.steps):
        start = time.perf_counter()
        tokens, targets = corpus.train_batch(0, step, options.batch_size)
        loss, _ = train_step(model, optimizer, tokens, targets)
        rates.append(tokens.numel() / (time.perf_counter() - start))
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "loss": loss,
                      "tokens_per_second": rates}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The peer of `tandem bench train`: transformers' GPT-2 at the size of XTTS v2 with both heads and their losses, one
optimizer step after the other: forward, loss, backward, fused AdamW. Sequences of 32 latents, text and audio codes,
all of one length. Prints one JSON object: tok/s and peak GiB for every way and batch.

Run: xtts_gpt_train.py --batch 16 3 --ways autocast bf16 compile
"""
import argparse
import json
import time

import torch
import transformers
from torch.nn.functional import cross_entropy

import compiled

LATENTS, TEXT, AUDIO = 32, 196, 404  # places of one sequence: 632


class XttsGpt(torch.nn.Module):
    def __init__(self, o):
        super().__init__()
        places = LATENTS + TEXT + AUDIO
        config = transformers.GPT2Config(
            vocab_size=8, bos_token_id=0, eos_token_id=0, n_positions=places, n_embd=o.width, n_layer=o.layers,
            n_head=o.heads, attn_implementation="sdpa", resid_pdrop=o.dropout, embd_pdrop=o.dropout, attn_pdrop=0.0,
            use_cache=False)
        self.trunk = transformers.GPT2Model(config)
        self.text, self.audio = torch.nn.Embedding(o.text_tokens, o.width), torch.nn.Embedding(o.audio_tokens, o.width)
        self.text_places, self.audio_places = torch.nn.Embedding(404, o.width), torch.nn.Embedding(608, o.width)
        self.norm = torch.nn.LayerNorm(o.width)
        self.text_head = torch.nn.Linear(o.width, o.text_tokens)
        self.audio_head = torch.nn.Linear(o.width, o.audio_tokens)

    def forward(self, latents, text, audio):
        words = self.text(text) + self.text_places.weight[:TEXT]
        sounds = self.audio(audio) + self.audio_places.weight[:AUDIO]
        x = torch.cat([latents.to(words.dtype), words, sounds], 1)
        x = self.norm(self.trunk(inputs_embeds=x).last_hidden_state)
        text_logits = self.text_head(x[:, LATENTS:LATENTS + TEXT])
        audio_logits = self.audio_head(x[:, LATENTS + TEXT:])
        return 0.01 * cross_entropy(text_logits.flatten(0, 1).float(), text.roll(-1, 1).flatten()) + cross_entropy(
            audio_logits.flatten(0, 1).float(), audio.roll(-1, 1).flatten())


def measure(o, way, batch):
    torch.manual_seed(0)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        model = XttsGpt(o).train()
    if way in ("bf16", "compile"):  # weights themselves in bfloat16: faster than autocast, and less exact
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.96), weight_decay=0.01, fused=True)
    run = compiled.for_one_shape(model) if way == "compile" else model
    latents = torch.randn(batch, LATENTS, o.width, device="cuda")
    text = torch.randint(0, o.text_tokens, (batch, TEXT), device="cuda")
    audio = torch.randint(0, o.audio_tokens, (batch, AUDIO), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=way == "autocast"):
            loss = run(latents, text, audio)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(5):
        loss = step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(o.steps):
        loss = step()
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / o.steps
    places = batch * (LATENTS + TEXT + AUDIO)
    return {"tokens_per_second": round(places / seconds), "milliseconds": round(seconds * 1e3, 2),
            "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2), "loss": round(loss.item(), 3)}


def main():
    parser = argparse.ArgumentParser()
    for name, value in {"layers": 30, "width": 1024, "heads": 16, "text_tokens": 6681, "audio_tokens": 1026,
                        "steps": 20}.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--batch", type=int, nargs="+", default=[16, 3])
    parser.add_argument("--ways", nargs="+", default=["autocast", "bf16", "compile"],
                        choices=["autocast", "bf16", "compile"])
    parser.add_argument("--compile-seconds", type=int, default=180, help="for a batch; then torch.compile is given up")
    o = parser.parse_args()
    result = {"peer": f"transformers {transformers.__version__} GPT-2, torch {torch.__version__}, fused AdamW"}
    for way in o.ways:
        found = result.setdefault(way, {})
        for batch in o.batch:
            try:
                with compiled.at_most(o.compile_seconds if way == "compile" else 0):
                    found[str(batch)] = measure(o, way, batch)
                compiled.tell(f"{way}, {batch} rows: {found[str(batch)]['tokens_per_second']} tok/s")
            except Exception as error:  # torch.compile does not run everywhere: say so, do not hide it
                found[str(batch)] = {"error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(result))


if __name__ == "__main__":
    main()

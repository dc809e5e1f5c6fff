#!/usr/bin/env python3
"""The peer of `tandem bench synthesize`: transformers' GPT-2 at the size of XTTS, decoding codes with its own
key-value cache in half precision. The vocoder is not counted, which favours the peer. Prints one JSON object.

Run: xtts_gpt.py --layers 30 --width 1024 --heads 16 --tokens 1026 --prompt 95 --codes 215 --batch 1 16 64
"""
import argparse
import json
import time

import torch
import transformers


def decode(model, embedding, head, batch, prompt, codes, draw):
    """Seconds for `codes` codes of `batch` sequences: prefill, then one at a time, sampled as XTTS does."""
    device, dtype = head.weight.device, head.weight.dtype
    x = torch.randn(batch, prompt, model.config.n_embd, device=device, dtype=dtype)
    cache = transformers.DynamicCache()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for step in range(codes):
        out = model(inputs_embeds=x, past_key_values=cache, use_cache=True)
        logits = head(out.last_hidden_state[:, -1])
        x = embedding(draw(logits)).unsqueeze(1)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def decode_static(model, embedding, head, batch, prompt, codes, draw):
    """The same with a static cache, which torch.compile needs to capture graphs."""
    device, dtype = head.weight.device, head.weight.dtype
    x = torch.randn(batch, prompt, model.config.n_embd, device=device, dtype=dtype)
    cache = transformers.StaticCache(config=model.config, max_cache_len=prompt + codes + 1)
    torch.cuda.synchronize()
    start = time.perf_counter()
    position = torch.arange(prompt, device=device)
    for step in range(codes):
        out = model(inputs_embeds=x, past_key_values=cache, use_cache=True, cache_position=position)
        logits = head(out.last_hidden_state[:, -1])
        x = embedding(draw(logits)).unsqueeze(1).clone()
        position = position[-1:] + 1
    torch.cuda.synchronize()
    return time.perf_counter() - start


def draw(logits):
    top = torch.topk(logits.float() / 0.75, 50)
    return top.indices.gather(1, torch.multinomial(torch.softmax(top.values, -1), 1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    for name, value in {"layers": 30, "width": 1024, "heads": 16, "tokens": 1026, "prompt": 95, "codes": 215}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--compile", action="store_true", help="also under torch.compile, batch 1 and the largest")
    options = parser.parse_args()
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=options.tokens, n_positions=options.prompt + options.codes + 8, n_embd=options.width,
        n_layer=options.layers, n_head=options.heads, attn_implementation="sdpa")
    model = transformers.GPT2Model(config).half().cuda().eval()
    embedding = torch.nn.Embedding(options.tokens, options.width).half().cuda()
    head = torch.nn.Linear(options.width, options.tokens).half().cuda()
    result = {"peer": f"transformers {transformers.__version__} GPT-2, fp16, torch {torch.__version__}", "eager": {}}
    with torch.inference_mode():
        for batch in options.batch:
            decode(model, embedding, head, batch, options.prompt, 5, draw)
            seconds = decode(model, embedding, head, batch, options.prompt, options.codes, draw)
            result["eager"][str(batch)] = batch * options.codes / seconds
        if options.compile:
            result["compile"] = {}
            try:
                fast = torch.compile(model, mode="reduce-overhead", fullgraph=False)
                for batch in sorted({options.batch[0], options.batch[-1]}):
                    decode_static(fast, embedding, head, batch, options.prompt, 8, draw)
                    decode_static(fast, embedding, head, batch, options.prompt, 8, draw)
                    seconds = decode_static(fast, embedding, head, batch, options.prompt, options.codes, draw)
                    result["compile"][str(batch)] = batch * options.codes / seconds
            except Exception as error:  # it does not run with every pair of versions: say so, do not hide it
                result["compile_error"] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps(result))


if __name__ == "__main__":
    main()

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

import compiled


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


def decode_static(model, step_model, cache, embedding, head, batch, prompt, codes, draw):
    """The same with a static cache, which torch.compile needs to capture graphs; the prefill is not compiled."""
    device, dtype = head.weight.device, head.weight.dtype
    x = torch.randn(batch, prompt, model.config.n_embd, device=device, dtype=dtype)
    torch.cuda.synchronize()
    start = time.perf_counter()
    position, run = torch.arange(prompt, device=device), model
    for step in range(codes):
        out = run(inputs_embeds=x, past_key_values=cache, use_cache=True, cache_position=position)
        logits = head(out.last_hidden_state[:, -1])
        x = embedding(draw(logits)).unsqueeze(1).clone()
        position, run = position[-1:] + 1, step_model
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
    parser.add_argument("--compile-seconds", type=int, default=180, help="then torch.compile is given up")
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
            result["eager"][str(batch)] = rate = batch * options.codes / seconds
            compiled.tell(f"eager, {batch} at once: {rate:.0f} codes/s")
        if options.compile:
            result["compile"] = {}
            try:
                with compiled.at_most(options.compile_seconds):
                    for batch in sorted({options.batch[0], options.batch[-1]}):
                        fast = compiled.for_one_shape(model, mode="reduce-overhead")
                        cache = transformers.StaticCache(config=config, max_cache_len=config.n_positions)
                        words = (model, fast, cache, embedding, head, batch, options.prompt)
                        decode_static(*words, 6, draw)  # compiles and captures
                        cache.reset()
                        seconds = decode_static(*words, options.codes, draw)
                        result["compile"][str(batch)] = rate = batch * options.codes / seconds
                        compiled.tell(f"compiled, {batch} at once: {rate:.0f} codes/s")
            except Exception as error:  # it does not run with every pair of versions: say so, do not hide it
                result["compile_error"] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps(result))


if __name__ == "__main__":
    main()

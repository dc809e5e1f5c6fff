#!/usr/bin/env python3
"""The peer of `tandem bench generate`: transformers' MusicGen at the published sizes with random weights in half
precision, its own generate() with guidance 3 and top-k 50. Prints one JSON object.

A step of it costs the same at every position but for the growing cache, so fewer steps than a whole clip are allowed;
the cache is then shorter than on average, which favours the peer. The codec is left out, which favours it too.

Run: musicgen.py --size small --steps 100 --text 128 --batch 1 8 32
"""
import argparse
import json
import time

import torch
import transformers

SIZES = {"small": (1024, 24, 16), "medium": (1536, 48, 24), "large": (2048, 48, 32)}


def make(size, positions):
    """Random weights, made on the GPU in half precision; the text encoder is t5-base's size."""
    width, layers, heads = SIZES[size]
    text = transformers.T5Config(d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12)
    codec = transformers.EncodecConfig(
        target_bandwidths=[2.2], sampling_rate=32000, audio_channels=1, normalize=False, hidden_size=128, num_filters=64,
        upsampling_ratios=[8, 5, 4, 4], codebook_size=2048, codebook_dim=128, use_causal_conv=False,
        use_conv_shortcut=False)
    decoder = transformers.MusicgenDecoderConfig(
        vocab_size=2048, max_position_embeddings=positions, num_hidden_layers=layers, ffn_dim=4 * width,
        num_attention_heads=heads, hidden_size=width, num_codebooks=4)
    config = transformers.MusicgenConfig(
        text_encoder=text.to_dict(), audio_encoder=codec.to_dict(), decoder=decoder.to_dict())
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        model = transformers.MusicgenForConditionalGeneration(config).eval()
    torch.set_default_dtype(torch.float32)
    model.generation_config.update(
        decoder_start_token_id=2048, pad_token_id=2048, bos_token_id=2048, do_sample=True, guidance_scale=3.0, top_k=50)
    return model


class Silent(torch.nn.Module):
    """In place of the codec while steps alone are timed."""

    def __init__(self, codec):
        super().__init__()
        self.codec, self.config = codec, codec.config

    def decode(self, codes, audio_scales=None, **_):
        return transformers.models.encodec.modeling_encodec.EncodecDecoderOutput(
            torch.zeros(codes.shape[1], 1, 1, device=codes.device))


def timed(model, batch, steps, text):
    ids = torch.randint(3, 30000, (batch, text), device="cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=steps)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--text", type=int, default=128)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
    options = parser.parse_args()
    torch.manual_seed(0)
    model = make(options.size, 2048)
    codec = model.audio_encoder
    result = {"peer": f"transformers {transformers.__version__} MusicGen, fp16, torch {torch.__version__}",
              "size": options.size, "steps": options.steps, "batches": {}}
    with torch.inference_mode():
        for batch in options.batch:
            try:
                torch.cuda.reset_peak_memory_stats()
                model.audio_encoder = Silent(codec)
                timed(model, batch, 8, options.text)
                seconds = timed(model, batch, options.steps, options.text)
                result["batches"][str(batch)] = {
                    "ms_per_step": 1e3 * seconds / options.steps,
                    "peak_memory_bytes": torch.cuda.max_memory_allocated()}
            except torch.cuda.OutOfMemoryError:
                result["batches"][str(batch)] = {"error": "out of memory"}
                torch.cuda.empty_cache()
    print(json.dumps(result))


if __name__ == "__main__":
    main()

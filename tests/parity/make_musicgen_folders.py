#!/usr/bin/env python3
"""Makes MusicGen folders with random weights through transformers' own classes, for compare_musicgen.py.

    python tests/parity/make_musicgen_folders.py FOLDER [NAME ...]      tiny, odd, stereo; small: the published shape

Needs transformers 4.57.6, tokenizers 0.22.2, torch 2.11.0. A folder is what people have: config.json,
generation_config.json, model.safetensors (or shards), tokenizer.json. Weights are random but not idle, as those of the
fixtures are.
"""

import pathlib
import sys

import transformers

from make_musicgen_fixtures import make_model, make_tokenizer

CAPTIONS = ("80s pop track with bassy drums and synth, the choir sings in a large hall over heavy metal guitars",
            "a slow piano", "Energetic techno: acid bass lines, a driving beat; dark mood.")

SIZES = {
    # Codes, codebooks and rates of the published models.
    "tiny": dict(
        pieces=200, seed=21, rows=2048,
        text=dict(vocab_size=128, d_model=48, d_kv=16, d_ff=96, num_layers=3, num_heads=4),
        codec=dict(sampling_rate=32000, hidden_size=32, num_filters=4, upsampling_ratios=[8, 5, 4, 4],
                   codebook_size=2048, target_bandwidths=[2.2], use_causal_conv=False, use_conv_shortcut=False),
        decoder=dict(vocab_size=2048, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, ffn_dim=128,
                     num_codebooks=4)),
    # Nothing is a multiple of anything; the weights come in shards.
    "odd": dict(
        pieces=90, seed=22, rows=256, shards="200KB",
        text=dict(vocab_size=111, d_model=37, d_kv=11, d_ff=53, num_layers=2, num_heads=3,
                  relative_attention_num_buckets=14, relative_attention_max_distance=19),
        codec=dict(sampling_rate=7000, hidden_size=9, num_filters=3, upsampling_ratios=[7, 5, 2], codebook_size=256,
                   target_bandwidths=[2.5], use_causal_conv=False, use_conv_shortcut=False, kernel_size=5,
                   num_residual_layers=2, num_lstm_layers=1),
        decoder=dict(vocab_size=256, hidden_size=105, num_hidden_layers=3, num_attention_heads=5, ffn_dim=131,
                     num_codebooks=3)),
    "stereo": dict(
        pieces=200, seed=23, rows=2048,
        text=dict(vocab_size=128, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
        codec=dict(sampling_rate=32000, hidden_size=16, num_filters=2, upsampling_ratios=[8, 5, 4, 4],
                   codebook_size=2048, target_bandwidths=[2.2], use_causal_conv=False, use_conv_shortcut=False),
        decoder=dict(vocab_size=2048, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, ffn_dim=80,
                     num_codebooks=8, audio_channels=2)),
    # As published, but for the pieces of its tokenizer: 2 GB, to measure with.
    "small": dict(
        pieces=200, seed=24, rows=2048,
        text=dict(vocab_size=32128, d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12),
        codec=dict(sampling_rate=32000, hidden_size=128, num_filters=64, upsampling_ratios=[8, 5, 4, 4],
                   codebook_size=2048, target_bandwidths=[2.2], use_causal_conv=False, use_conv_shortcut=False),
        decoder=dict(vocab_size=2048, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, ffn_dim=4096,
                     num_codebooks=4)),
}
COMPARED = ("tiny", "odd", "stereo")


def make(name, folder):
    size = SIZES[name]
    size["decoder"].setdefault("pad_token_id", size["rows"])
    size["decoder"].setdefault("bos_token_id", size["rows"])
    tokenizer = make_tokenizer(size["pieces"])
    assert len(tokenizer) <= size["text"]["vocab_size"], len(tokenizer)
    make_model(size, size["seed"]).save_pretrained(folder, max_shard_size=size.get("shards", "5GB"))
    tokenizer.save_pretrained(folder)
    return folder


def make_all(base, names=()):
    """{name: folder}"""
    transformers.utils.logging.disable_progress_bar()
    return {name: make(name, pathlib.Path(base) / name) for name in names or COMPARED}


if __name__ == "__main__":
    print(*make_all(sys.argv[1], sys.argv[2:]).values(), sep="\n")

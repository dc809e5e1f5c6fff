"""Makes tests/models/fixtures/musicgen/{tiny,odd,stereo}: folders as transformers' save_pretrained writes them, with
random weights, and beside each NAME_expected.safetensors: what transformers gives for them. Run with the references'
Python (scripts/references.sh):

    PYTHON tests/parity/make_musicgen_fixtures.py [NAME]...

transformers 4.57.6, tokenizers 0.22.2, torch 2.11.0, CPU, float32.

    tiny    fp16, mono, relu; what other tests take for a model
    odd     fp16, sizes that share no factor; a causal codec with convolutions as shortcuts, two residual layers, a part
            trimmed on the left
    stereo  bf16, two channels, a gated text encoder as wide as the decoder (no projection)
"""
import json
import math
import pathlib
import shutil
import sys
import warnings

import tokenizers
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors, decoders, trainers
from transformers import (EncodecConfig, MusicgenConfig, MusicgenDecoderConfig, MusicgenForConditionalGeneration,
                          T5Config, T5TokenizerFast)

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
FOLDER = pathlib.Path(__file__).parent.parent / "models" / "fixtures" / "musicgen"
VERSIONS = {"made_by": "make_musicgen_fixtures.py", "torch": torch.__version__,
            "transformers": transformers.__version__, "tokenizers": tokenizers.__version__}
CAPTIONS = ["80s pop track with bassy drums and synth",
            "a slow piano",
            "Energetic techno: acid bass lines, a driving beat; dark mood."]
TUNES = CAPTIONS + [
    "a calm guitar melody over soft rain", "fast drum and bass with a deep sub bass", "an orchestra plays a waltz",
    "lo-fi hip hop beat for studying", "the choir sings in a large hall", "heavy metal guitars and double kick drums",
    "happy ukulele and whistling", "ambient pads, slow and warm", "jazz trio: piano, bass and drums",
    "a solo violin plays a sad tune", "dark cinematic strings with big percussion", "funky bass line with claps"]

SIZES = {
    "tiny": dict(
        pieces=200, seed=11,
        text=dict(vocab_size=112, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2),
        codec=dict(sampling_rate=16000, hidden_size=8, num_filters=2, upsampling_ratios=[8, 5, 8], codebook_size=32,
                   target_bandwidths=[1.0], use_causal_conv=False, use_conv_shortcut=False),
        decoder=dict(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
                     num_codebooks=4, pad_token_id=32, bos_token_id=32)),
    "odd": dict(
        pieces=90, seed=12,
        text=dict(vocab_size=101, d_model=11, d_kv=5, d_ff=13, num_layers=2, num_heads=3,
                  relative_attention_num_buckets=12, relative_attention_max_distance=9, layer_norm_epsilon=1e-5),
        codec=dict(sampling_rate=1000, hidden_size=6, num_filters=2, upsampling_ratios=[5, 3, 2], codebook_size=32,
                   target_bandwidths=[0.51], use_causal_conv=True, use_conv_shortcut=True, kernel_size=5,
                   last_kernel_size=3, num_residual_layers=2, dilation_growth_rate=3, compress=1, num_lstm_layers=1,
                   trim_right_ratio=0.6),
        decoder=dict(vocab_size=32, hidden_size=15, num_hidden_layers=1, num_attention_heads=3, ffn_dim=17,
                     num_codebooks=3, pad_token_id=32, bos_token_id=32, max_position_embeddings=60)),
    "stereo": dict(
        pieces=90, seed=13,
        text=dict(vocab_size=101, d_model=12, d_kv=4, d_ff=10, num_layers=1, num_heads=2,
                  feed_forward_proj="gated-gelu"),
        codec=dict(sampling_rate=1000, hidden_size=6, num_filters=3, upsampling_ratios=[4, 5], codebook_size=32,
                   target_bandwidths=[1.0], use_causal_conv=False, use_conv_shortcut=False, num_lstm_layers=1),
        decoder=dict(vocab_size=32, hidden_size=12, num_hidden_layers=1, num_attention_heads=2, ffn_dim=20,
                     num_codebooks=8, audio_channels=2, pad_token_id=32, bos_token_id=32)),
}


def make_tokenizer(pieces):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=pieces, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>",
                                      show_progress=False)
    tokenizer.train_from_iterator(TUNES, trainer)
    # Scores to seven digits: the file stays small.
    file = json.loads(tokenizer.to_str())
    file["model"]["vocab"] = [[piece, round(score, 7)] for piece, score in file["model"]["vocab"]]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                             special_tokens=[("</s>", 1)])
    return T5TokenizerFast(tokenizer_object=tokenizer, extra_ids=0)


def spread(name, parameter, generator):
    """Weights large enough that every part of the model shows in the results."""
    draw = torch.randn(parameter.shape, generator=generator)
    if name.endswith("inited") or name.endswith("cluster_size"):
        return torch.ones(parameter.shape)
    if name.endswith("codebook.embed_avg"):
        return torch.zeros(parameter.shape)
    if name.endswith("codebook.embed"):
        return draw * 0.6 ** int(name.split(".")[3])
    if name.endswith("original0"):
        if ".decoder.layers.15." in name or parameter.shape[0] == 1:
            return 0.3 + 0.05 * draw
        return 1.0 + 0.2 * draw
    if "embed_tokens" in name or "shared" in name:
        return draw * 0.7
    if "relative_attention_bias" in name:
        return draw
    if parameter.dim() == 1:
        return 1 + 0.2 * draw if name.endswith("norm.weight") else 0.1 * draw
    gain = 2.0 if "lm_heads" in name else 1.3
    return draw * gain / math.sqrt(parameter[0].numel())


def make_model(size, seed):
    # From dicts: transformers 5 has no from_sub_models_config any more.
    config = MusicgenConfig(text_encoder=T5Config(**size["text"]).to_dict(),
                            audio_encoder=EncodecConfig(**size["codec"]).to_dict(),
                            decoder=MusicgenDecoderConfig(**size["decoder"]).to_dict())
    model = MusicgenForConditionalGeneration(config).eval()
    generator = torch.Generator().manual_seed(seed)
    state = model.state_dict()
    with torch.no_grad():
        for name, parameter in state.items():
            parameter.copy_(spread(name, parameter, generator))
    start = size["decoder"]["pad_token_id"]
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=start, decoder_start_token_id=start, pad_token_id=start, do_sample=True, guidance_scale=3.0,
        max_length=1500)
    return model


def save(name, model, tokenizer):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16 if name == "stereo" else torch.float16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for file in ("special_tokens_map.json", "tokenizer_config.json"):
        (folder / file).unlink(missing_ok=True)
    whole = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n")
    return folder


def text_results(model, tokenizer, out):
    for side in ("right", "left"):
        tokenizer.padding_side = side
        batch = tokenizer(CAPTIONS + [""], padding=True, return_tensors="pt")
        states = model.text_encoder(batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
        out[f"text_ids_{side}"], out[f"text_mask_{side}"] = batch.input_ids, batch.attention_mask
        out[f"text_states_{side}"] = states
    alone = tokenizer(CAPTIONS[1], return_tensors="pt").input_ids
    out["text_states_alone"] = model.text_encoder(alone).last_hidden_state
    out["text_ids_cut"] = torch.tensor(tokenizer(CAPTIONS[2], truncation=True, max_length=7).input_ids)


def margins_of(codec, features, codes):
    """Squared distance to the second nearest entry less that to the nearest: [K, frames]."""
    rest, margins = features[0].double(), []
    for k in range(codes.shape[0]):
        book = codec.quantizer.layers[k].codebook.embed.double()
        distances = (rest[:, None] - book[None]).pow(2).sum(-1)
        two = distances.topk(2, largest=False).values
        margins.append(two[:, 1] - two[:, 0])
        rest = rest - book[codes[k]]
    return torch.stack(margins)


def codec_results(model, size, out):
    codec, generator = model.audio_encoder, torch.Generator().manual_seed(size["seed"] + 100)
    count, hop = codec.config.num_quantizers, codec.config.hop_length
    for frames in (1, 2, 3, 4, 6 if hop > 100 else 30):
        codes = torch.randint(0, codec.config.codebook_size, (1, count, frames), generator=generator)
        out[f"codes_{frames}"] = codes.int()
        out[f"wav_{frames}"] = codec.decode(codes[None], [None]).audio_values
    if hop < 100:  # fewer codebooks than there are, two clips
        few = torch.randint(0, codec.config.codebook_size, (2, count - 1, 5), generator=generator)
        out["codes_few"], out["wav_few"] = few.int(), codec.decode(few[None], [None]).audio_values
    lengths = {"short": 3, "part": 3 * hop + 1, "whole": (4 if hop > 100 else 17) * hop}
    for name, samples in lengths.items():
        # Sound whose nearest codes are clear.
        best = -1.0
        for _ in range(40):
            sound = torch.randn(1, 1, samples, generator=generator).mul(0.5)
            sound = torch.nn.functional.avg_pool1d(sound, 3, 1, 1)
            features = codec.encoder(sound).transpose(1, 2)
            codes = codec.encode(sound).audio_codes[0, 0]
            margin = margins_of(codec, features, codes)
            if margin.min() > best:
                best, kept = margin.min().item(), (sound, features, codes)
        print(f"  {name}: {samples} samples, {kept[2].shape[1]} frames, least margin {best:.2e}")
        for what, tensor in zip(("sound", "features", "encoded"), kept):
            out[f"{what}_{name}"] = tensor.int() if what == "encoded" else tensor.float()


def main():
    transformers.utils.logging.disable_progress_bar()
    for name in sys.argv[1:] or SIZES:
        size = SIZES[name]
        print(name)
        tokenizer = make_tokenizer(size["pieces"])
        assert len(tokenizer) <= size["text"]["vocab_size"], len(tokenizer)
        folder = save(name, make_model(size, size["seed"]), tokenizer)
        with torch.no_grad():
            model = MusicgenForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
            tokenizer = T5TokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), extra_ids=0)
            out = {}
            text_results(model, tokenizer, out)
            codec_results(model, size, out)
            out["positions"] = model.decoder.model.decoder.embed_positions.weights[[0, 1, 2, 59]]
            if name == "tiny":
                out["positions_late"] = model.decoder.model.decoder.embed_positions.weights[[1500, 2047]]
        out = {key: (t.int() if t.dtype == torch.int64 else t).contiguous() for key, t in out.items()}
        save_file(out, FOLDER / f"{name}_expected.safetensors",
                  metadata={**VERSIONS, "captions": json.dumps(CAPTIONS)})
        print("  parameters", sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()

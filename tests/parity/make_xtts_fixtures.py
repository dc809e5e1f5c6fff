"""Makes tests/models/xtts/fixtures/{gpt,conditioning,vocoder,speaker,voice,dvae_whole,sample}.safetensors: what
coqui-tts's own classes give at narrow sizes. Run with the references' Python (scripts/references.sh):

    PYTHON tests/parity/make_xtts_fixtures.py [NAME]...

coqui-tts 0.28.0, torch 2.11.0, transformers 4.57.6, CPU, float32. Weights and inputs are not stored: both sides compute
them from their names (tests/models/xtts_values.h has the same rules), so the files hold results only.
"""
import math
import pathlib
import sys
import tempfile
import warnings
import wave

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from torch.nn.utils import parametrize

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
FIXTURES = pathlib.Path(__file__).parent.parent / "models" / "xtts" / "fixtures"
VERSIONS = {"made_by": "make_xtts_fixtures.py", "coqui-tts": "0.28.0", "torch": torch.__version__,
            "transformers": transformers.__version__}
GPT = dict(layers=3, model_dim=40, heads=5, max_text_tokens=20, max_mel_tokens=40, max_prompt_tokens=10,
           number_text_tokens=37, num_audio_tokens=34, start_audio_token=32, stop_audio_token=33, start_text_token=31,
           stop_text_token=0, use_perceiver_resampler=True, code_stride_len=1024)


def mix_bits(x):
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def words(name, count):
    value = np.uint64(0xCBF29CE484222325)
    for byte in name.encode():
        value = (value ^ np.uint64(byte)) * np.uint64(0x100000001B3)
    return mix_bits(mix_bits(value) + np.arange(count, dtype=np.uint64))


def values(name, shape, scale=1.0, mean=0.0):
    """Evenly spread over mean - scale .. mean + scale."""
    units = (words(name, math.prod(shape)) >> np.uint64(40)).astype(np.float64) * 2.0 ** -23 - 1.0
    return torch.from_numpy((mean + scale * units).astype(np.float32).reshape(shape))


def whole_numbers(name, shape, bound):
    return torch.from_numpy(((words(name, math.prod(shape)) >> np.uint64(32)) % np.uint64(bound)).astype(np.int64)
                            .reshape(shape))


def weight(name, shape):
    if name.endswith("running_var"):
        return values(name, shape, 0.5, 1.0)
    if name.endswith("codebook.embed"):
        return values(name, shape)
    if "embedding" in name or name.endswith("latents"):
        return values(name, shape, 0.5)
    if len(shape) > 1:
        return values(name, shape, 1.7 / math.sqrt(math.prod(shape[1:])))
    if name.endswith(".weight") or name.endswith("gamma"):
        return values(name, shape, 0.2, 1.0)
    return values(name, shape, 0.1)


def fill(module, prefix):
    """Weight norm folded, then every tensor by its name."""
    for part in module.modules():
        if parametrize.is_parametrized(part, "weight"):
            parametrize.remove_parametrizations(part, "weight")
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if "num_batches_tracked" not in name and "torch_spec" not in name:
                tensor.copy_(weight(prefix + name, tuple(tensor.shape)))
    return module.eval()


def narrow_gpt(**changes):
    from TTS.tts.layers.xtts.gpt import GPT as Gpt
    return fill(Gpt(**{**GPT, **changes}), "gpt.")


def narrow_speaker_encoder():
    from TTS.encoder.models.resnet import ResNetSpeakerEncoder
    config = {"fft_size": 512, "win_length": 400, "hop_length": 160, "sample_rate": 16000, "preemphasis": 0.97,
              "num_mels": 64}
    return fill(ResNetSpeakerEncoder(input_dim=64, proj_dim=12, layers=[2, 1, 2, 1], num_filters=[8, 16, 16, 24],
                                     log_input=True, use_torch_spec=True, audio_config=config),
                "hifigan_decoder.speaker_encoder.")


def gpt():
    model, dim = narrow_gpt(), GPT["model_dim"]
    out = {}
    ids = whole_numbers("text", (2, 9), 30) + 1
    lengths, waves = torch.tensor([9, 5]), torch.tensor([11 * 1024 - 700, 7 * 1024 + 1])
    ids[1, 5:] = 0
    codes = whole_numbers("codes", (2, 11), 32)
    cond = values("cond", (2, 32, dim))
    text_logits = []
    hook = model.text_head.register_forward_hook(lambda _, i, o: text_logits.append(o.permute(0, 2, 1).detach()))
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    unused = torch.zeros(2, 1, 80, 4)  # asked for its batch size only
    loss_text, loss_mel, mel_logits = model(ids, lengths, codes.clone(), waves, cond_mels=unused, cond_latents=cond)
    (0.01 * loss_text + loss_mel).backward()
    hook.remove()
    out.update(loss_text=loss_text, loss_mel=loss_mel, mel_logits=mel_logits, text_logits=text_logits[0])
    for name in ("gpt.h.0.attn.c_attn.weight", "gpt.h.2.mlp.c_proj.weight", "mel_pos_embedding.emb.weight",
                 "text_embedding.weight", "final_norm.weight", "gpt.ln_f.bias", "mel_head.weight"):
        out[f"grad_norm/{name}"] = dict(model.named_parameters())[name].grad.norm()
    spoken = whole_numbers("spoken", (1, 13), 32)
    with torch.no_grad():
        out["latents"] = model(ids[:1], lengths[:1], spoken.clone(), torch.tensor([13 * 1024]), cond_latents=cond[:1],
                               return_latent=True)
    with torch.no_grad():
        model.mel_head.bias[GPT["stop_audio_token"]] = -30  # speaks as long as it may
    model.init_gpt_for_inference(kv_cache=True, use_deepspeed=False)
    model.eval()
    for penalty in (1.0, 5.0):
        generated = model.generate(cond_latents=cond[:1], text_inputs=ids[:1].int(), do_sample=False, num_beams=1,
                                   num_return_sequences=1, repetition_penalty=penalty, output_attentions=False)
        out[f"greedy.{penalty:.0f}"] = generated[0] if generated.dim() == 2 else generated
    return out


def conditioning():
    out = {}
    for dim, heads in ((40, 5), (280, 5), (64, 4), (16, 2)):
        model = narrow_gpt(model_dim=dim, heads=heads)
        mels = values(f"mels.{dim}", (2, 80, 23), 2.0, -1.0)
        with torch.no_grad():
            latents = model.get_style_emb(mels).transpose(1, 2)  # [B, 32, D]
        out[f"latents.{dim}"] = latents[:, ::8]
    return out


def vocoder():
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder
    model = HifiDecoder(decoder_input_dim=40, upsample_initial_channel_decoder=16, d_vector_dim=12)
    fill(model.waveform_decoder, "hifigan_decoder.waveform_decoder.")
    out = {}
    for codes in (1, 2, 9):
        latents = values(f"latents.{codes}", (2, codes, 40), 1.5)
        speaker = torch.nn.functional.normalize(values("speaker", (2, 12)))
        with torch.no_grad():
            out[f"wav.{codes}"] = model(latents, g=speaker.unsqueeze(-1)).squeeze(1)
    return out


def speaker():
    model, out = narrow_speaker_encoder(), {}
    for samples in (4000, 16001):
        with torch.no_grad():
            out[f"embedding.{samples}"] = model(values(f"audio.{samples}", (2, samples), 0.5), l2_norm=True)
    return out


def write_clip(path, name, frames, channels, rate):
    """Smoothed noise in whole numbers."""
    noise = (words(name, (frames + 7) * channels) >> np.uint64(52)).astype(np.int64) - 2048
    noise = noise.reshape(frames + 7, channels)
    sums = sum(noise[i:i + frames] for i in range(8))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(sums.astype("<i2").tobytes())


def voice():
    from TTS.tts.configs.xtts_config import XttsConfig
    from TTS.tts.models.xtts import Xtts, XttsArgs
    args = XttsArgs(gpt_layers=3, gpt_n_model_channels=40, gpt_n_heads=5, gpt_number_text_tokens=37,
                    gpt_num_audio_tokens=34, gpt_start_audio_token=32, gpt_stop_audio_token=33,
                    gpt_start_text_token=31, gpt_stop_text_token=0, decoder_input_dim=40,
                    gpt_use_perceiver_resampler=True)
    model = Xtts(XttsConfig(model_args=args))
    model.gpt, model.mel_stats = narrow_gpt(), values("mel_stats", (80,), 0.2, 1.0)
    model.hifigan_decoder.speaker_encoder = narrow_speaker_encoder()
    model.eval()
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_clip(folder / "a.wav", "clip.a", 57330, 2, 44100)   # 1.3 s, stereo
        write_clip(folder / "b.wav", "clip.b", 90000, 1, 22050)   # 4.08 s
        write_clip(folder / "c.wav", "clip.c", 96000, 1, 96000)   # 1 s
        for name, files, settings in (
                ("two", "ab", dict(max_ref_length=4, gpt_cond_len=5, gpt_cond_chunk_len=2)),
                ("short_rest", "b", dict(max_ref_length=30, gpt_cond_len=30, gpt_cond_chunk_len=4)),
                ("level", "c", dict(max_ref_length=30, gpt_cond_len=30, gpt_cond_chunk_len=4, sound_norm_refs=True))):
            with torch.no_grad():
                latent, embedding = model.get_conditioning_latents([str(folder / f"{file}.wav") for file in files],
                                                                   **settings)
            out[f"{name}.gpt_cond_latent"], out[f"{name}.speaker_embedding"] = latent, embedding
    return out


def dvae_whole():
    from TTS.tts.layers.xtts.dvae import DiscreteVAE
    model = DiscreteVAE(channels=80, normalization=None, positional_dims=1, num_tokens=48, codebook_dim=12,
                        hidden_dim=12, num_resnet_blocks=3, kernel_size=3, num_layers=2, use_transposed_convs=False)
    fill(model, "")
    mels = values("mels", (2, 80, 24), 2.0, -1.0)
    with torch.no_grad():
        codes = model.get_codebook_indices(mels)
        loss, commitment, mel = model(mels)
        decoded = model.decode(codes)[0]
    return {"codes": codes, "loss": loss.mean(), "commitment": commitment.mean(), "mels": mel, "decoded": decoded}


def sample():
    from transformers import (LogitsProcessorList, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper,
                              TopKLogitsWarper, TopPLogitsWarper)
    out = {}
    logits = values("logits", (6, 60), 6.0)
    logits[5] = (logits[5] / 4).round()  # many equal ones
    said = whole_numbers("said", (6, 20), 60)
    cases = [(0.75, 50, 0.85, 5.0), (1.0, 5, 1.0, 1.0), (0.3, 60, 0.5, 10.0), (2.0, 12, 0.99, 2.0), (0.75, 50, 0.0, 5.0),
             (0.9, 7, 0.8, 1.3)]
    for case, (temperature, top_k, top_p, penalty) in enumerate(cases):
        chain = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(penalty), TemperatureLogitsWarper(temperature),
                                     TopKLogitsWarper(top_k)])
        if top_p < 1:
            chain.append(TopPLogitsWarper(top_p))
        scores = torch.cat([chain(said[row:row + 1], logits[row:row + 1].clone()) for row in range(6)])
        out[f"chances.{case}"] = scores.softmax(-1)
        out[f"options.{case}"] = torch.tensor([temperature, top_k, top_p, penalty], dtype=torch.float64)
    return out


def main():
    torch.set_num_threads(1)
    for make in (gpt, conditioning, vocoder, speaker, voice, dvae_whole, sample):
        if len(sys.argv) > 1 and make.__name__ not in sys.argv[1:]:
            continue
        place = FIXTURES / f"{make.__name__}.safetensors"
        tensors = {name: tensor.detach().clone().contiguous() for name, tensor in make().items()}
        save_file(tensors, str(place), metadata=VERSIONS)
        place.chmod(0o644)
        print(place.name, place.stat().st_size, "bytes", {name: list(tensor.shape) for name, tensor in tensors.items()})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes XTTS folders with random weights through coqui-tts's own classes, for compare_xtts.py.

    python tests/parity/make_xtts_folders.py [NAME ...]      small, odd, wide

Needs coqui-tts 0.28.0, torch 2.11.0, tokenizers 0.22.2. A folder is what people have: model.pth, config.json,
vocab.json, dvae.pth, mel_stats.pth, speakers_xtts.pth. It is kept in the cache (350 MB each: Coqui fixes the widths of
the decoder, the speaker encoder and the DVAE) and made again when this file or a version changes.

The weights are random but not idle: every layer changes the outcome, and, as in a trained model, the stop token grows
likelier the longer the sentence gets, so that greedy decoding ends by itself after 105 to 300 codes.
"""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import math
import os
import pathlib
import random
import shutil
import sys
import warnings
import zlib

import torch

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIPS = ROOT / "assets" / "demo" / "wavs"
PACKAGES = ("coqui-tts", "coqui-tts-trainer", "torch", "torchaudio", "transformers", "tokenizers", "num2words")


@dataclasses.dataclass(frozen=True)
class Size:
    layers: int
    width: int
    heads: int
    vocabulary: int  # asked for; what the text gives may be less
    codes: int
    voice: str
    texts: tuple  # (language, text); the last one is spoken to its end
    start: int = None  # audio ids; after the codes unless given
    stop: int = None
    max_text: int = 402
    max_audio: int = 605
    checkpoint: str = "plain"  # plain, object (a pickled config, as released), trainer (`xtts.` before each name)
    odd_vocabulary: bool = False  # merges twice, holes between the ids
    sampling: dict = dataclasses.field(default_factory=lambda: {
        "temperature": 0.75, "repetition_penalty": 5.0, "top_k": 50, "top_p": 0.85, "length_penalty": 1.0})
    cloning: dict = dataclasses.field(default_factory=lambda: {
        "gpt_cond_len": 30, "gpt_cond_chunk_len": 4, "max_ref_len": 30, "sound_norm_refs": False})


SIZES = {
    # Two pieces of conditioning, of 4 s and 1.5 s.
    "small": Size(layers=4, width=128, heads=4, vocabulary=1500, codes=1024, voice="agent-alreadyon",
                  checkpoint="object", texts=(
                      ("en", "Mr. Jones paid $3.50 for the 2nd of 15 apples, and then he walked home."),
                      ("es", "El niño compró 21 manzanas en la tienda de la Sra. López; ¿qué hora es?"),
                      ("fr", "Où est l'élève de Mme. Dupont ? Il a dit 80 % de la vérité."))),
    # The reference is cut to 5 s and levelled, its pieces are of 3 s and 2 s; start and stop are swapped.
    "odd": Size(layers=3, width=280, heads=5, vocabulary=900, codes=397, start=398, stop=397, voice="queue-youarenext",
                max_text=211, max_audio=331, odd_vocabulary=True, texts=(
                    ("de", "Frau Dr. Müller und Herr Weiß kauften 17 Äpfel in der Straße am Fluß."),
                    ("ru", "Привет, мир! Г-жа Иванова купила 12 яблок."),
                    ("en", "The price of apples rose by 5%, so we met near St. Paul's café.")),
                sampling={"temperature": 0.9, "repetition_penalty": 2.0, "top_k": 30, "top_p": 0.9,
                          "length_penalty": 1.0},
                cloning={"gpt_cond_len": 12, "gpt_cond_chunk_len": 3, "max_ref_len": 5, "sound_norm_refs": True}),
    # 4.14 s: the second piece is under 0.33 s and dropped.
    "wide": Size(layers=6, width=512, heads=8, vocabulary=2500, codes=1024, voice="vm-mailboxfull",
                 checkpoint="trainer", texts=(
                     ("pl", "Dzień dobry, P. Kowalski ma 33 książki i jedną lampę."),
                     ("ar", "كان هناك 50 كتابا في المدرسة؛ هل أنت بخير؟ نعم."),
                     ("en", "To leave the conference, press 1; to lock it, press 2."))),
}


def versions():
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "tandem" / "parity" / "xtts"


def fingerprint(*files):
    """Of the programs that made something and the packages they used."""
    digest = hashlib.sha256(json.dumps(versions()).encode())
    for file in files:
        digest.update(pathlib.Path(file).read_bytes())
    return digest.hexdigest()


class Draw:
    """Random tensors by name: the same whatever else is drawn."""

    def __init__(self, size):
        self.size = size

    def __call__(self, name, shape, deviation, mean=0.0):
        generator = torch.Generator().manual_seed(zlib.crc32(f"{self.size} {name}".encode()))
        return torch.randn(shape, generator=generator) * deviation + mean


def draw_gpt(gpt, draw):
    with torch.no_grad():
        for name, value in gpt.named_parameters():
            norm = ".ln_" in name or "norm." in name
            if name.endswith("gamma") or (norm and name.endswith("weight")):
                value.copy_(draw(name, value.shape, 0.2, 1.0))
            elif name.endswith("bias"):
                value.copy_(draw(name, value.shape, 0.1))
            elif name.endswith("pos_embedding.emb.weight"):
                value.copy_(draw(name, value.shape, 0.3))
            elif name.endswith("embedding.weight") or name.endswith("latents"):
                value.copy_(draw(name, value.shape, 0.8))
            else:
                # Trunk weights lie [in, out], all others [out, in, ...].
                fan_in = value.shape[0] if name.startswith("gpt.h.") else value[0].numel()
                gains = {"c_attn": 1.3, "mel_head": 2.0, "perceiver": 1.25}
                gain = next((gain for part, gain in gains.items() if part in name), 0.8)
                value.copy_(draw(name, value.shape, gain / math.sqrt(fan_in)))
        # The stop token's row points along one direction, which the positions take more and more of.
        direction = torch.nn.functional.normalize(draw("direction", (gpt.model_dim,), 1.0), dim=0)
        places = torch.arange(gpt.mel_pos_embedding.emb.weight.shape[0]).unsqueeze(1)
        rise = ((places - 60).clamp(min=0) / 60).clamp(max=3)
        gpt.mel_pos_embedding.emb.weight += rise * direction * 0.9 * math.sqrt(gpt.model_dim)
        gpt.mel_head.weight[gpt.stop_audio_token] = direction * 14.0 / math.sqrt(gpt.model_dim)
        gpt.mel_head.bias[gpt.stop_audio_token] = -4.0
        # The ids of Coqui's prompt: they would be said first if the repetition penalty did not cover it.
        gpt.mel_head.bias[1] = 6.0
        gpt.mel_head.bias[gpt.start_audio_token] = 6.0


def draw_vocoder(vocoder, draw, latents, speaker):
    """Each convolution keeps the loudness; the last one is set so that the sound is loud but not cut off."""
    with torch.no_grad():
        for name, value in vocoder.named_parameters():
            if name.endswith("bias"):
                value.copy_(draw(name, value.shape, 0.05))
            elif name.endswith("original1"):
                value.copy_(draw(name, value.shape, 0.1))
            elif name.endswith("original0"):
                stage = int(name.split(".")[1])
                gain = (2.0, 2.0, 1.0, 1.0)[stage] if name.startswith("ups.") else 0.5
                value.copy_(draw(name, value.shape, 0.1 * gain, gain).abs())
            else:
                value.copy_(draw(name, value.shape, 1.0 / math.sqrt(value[0].numel())))
        sounds = []
        hook = vocoder.conv_post.register_forward_hook(lambda module, inputs, output: sounds.append(output))
        vocoder(latents, g=speaker)
        hook.remove()
        vocoder.conv_post.weight *= 0.3 / sounds[0].std()


def draw_speaker_encoder(encoder, draw, waves):
    """Batch statistics are those of real speech, so that two voices differ."""
    with torch.no_grad():
        for name, value in encoder.named_parameters():
            if value.dim() == 1:
                norm = "bn" in name or "downsample.1" in name or name.startswith("attention.2")
                # What a block adds is kept small: sixteen random blocks in a row would blow up rounding errors.
                mean = 0.0 if not norm or name.endswith("bias") else 0.3 if "bn2" in name else 1.0
                value.copy_(draw(name, value.shape, 0.1, mean))
            else:
                value.copy_(draw(name, value.shape, 1.4 / math.sqrt(value[0].numel())))
        for module in encoder.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                module.momentum = None  # the plain mean of all passes
        encoder.train()
        for wave in waves:
            encoder(wave.clone(), l2_norm=True)
        encoder.eval()


def draw_dvae(dvae, draw, mels):
    """The codebook holds what the encoder says of real speech, so that codes vary."""
    with torch.no_grad():
        for name, value in dvae.named_parameters():
            deviation = 0.05 if value.dim() == 1 else 1.3 / math.sqrt(value[0].numel())
            value.copy_(draw(name, value.shape, deviation))
        found = torch.cat([dvae.encoder(mel)[0] for mel in mels], dim=1)  # [512, codes]
        count = dvae.codebook.embed.shape[1]
        picked = found[:, torch.arange(count) * 7919 % found.shape[1]]
        dvae.codebook.embed.copy_(picked + draw("codebook", picked.shape, 0.3) * found.std())
        dvae.codebook.embed_avg.copy_(dvae.codebook.embed)


def text_of_all_languages():
    """Cleaned sentences of the comparison's languages: words, numbers in words, symbols."""
    from make_clean_fixtures import LANGUAGES, WORDS, reference, sentences
    clean, lines = reference(), []
    for language in LANGUAGES:
        texts = [WORDS[language].lower()] * 8 + [text.lower() for text in sentences(language, 150, seed=5)]
        texts += [text.lower() for size in SIZES.values() for spoken, text in size.texts if spoken == language] * 4
        lines += [line for line in (clean(text, language) for text in texts) if line]
    return lines


def make_vocabulary(path, size, lines):
    from make_clean_fixtures import LANGUAGES
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    special = ["[STOP]", "[UNK]", "[SPACE]", "[START]"] + [f"[{language}]" for language in LANGUAGES]
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    # The alphabet alone of seventeen languages is larger than a small vocabulary: capitals (German number words) are
    # left out as in the released file, and so are the rarest characters.
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size.vocabulary, special_tokens=special, limit_alphabet=size.vocabulary // 2, show_progress=False))
    content = json.loads(tokenizer.to_str())
    model = content["model"]
    model["merges"] = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    if size.odd_vocabulary:
        chance = random.Random(3)
        again = chance.sample(model["merges"], len(model["merges"]) // 4)
        for pair in again:  # the later one counts
            first = model["merges"].index(pair)
            model["merges"].insert(chance.randint(first + 1, len(model["merges"])), pair)
        moved = {token: at + at // 100 * 3 for token, at in model["vocab"].items()}
        for token in content["added_tokens"]:
            token["id"] = moved[token["content"]]
        model["vocab"] = moved
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def make_config(size):
    from TTS.tts.configs.xtts_config import XttsArgs, XttsConfig
    arguments = XttsArgs(
        gpt_layers=size.layers, gpt_n_model_channels=size.width, gpt_n_heads=size.heads,
        gpt_max_text_tokens=size.max_text, gpt_max_audio_tokens=size.max_audio, gpt_num_audio_tokens=size.codes + 2,
        gpt_start_audio_token=size.codes if size.start is None else size.start,
        gpt_stop_audio_token=size.codes + 1 if size.stop is None else size.stop,
        gpt_use_perceiver_resampler=True, decoder_input_dim=size.width)
    return XttsConfig(model_args=arguments, **size.sampling, **size.cloning)


@contextlib.contextmanager
def released_class_names():
    """The released model.pth names the classes of its config where they stood when it was written."""
    from TTS.tts.configs import xtts_config
    from TTS.tts.models import xtts
    moved = (xtts_config.XttsArgs, xtts_config.XttsAudioConfig)
    for cls in moved:
        cls.__module__ = xtts.__name__
    try:
        yield
    finally:
        for cls in moved:
            cls.__module__ = xtts_config.__name__


def save_model(path, size, model, config):
    state = {name: value.clone() for name, value in model.state_dict().items()}
    if size.checkpoint == "object":
        with released_class_names():
            torch.save({"model": state, "config": config, "step": 0, "scaler": None}, path)
    elif size.checkpoint == "trainer":
        state = {f"xtts.{name}": value for name, value in state.items()}
        state["dvae.codebook.cluster_size"] = torch.zeros(8)
        state["torch_mel_spectrogram_dvae.mel_stft.spectrogram.window"] = torch.hann_window(1024)
        torch.save({"model": state, "config": config.to_dict(), "step": 7, "epoch": 1, "date": "", "model_loss": 1.5,
                    "optimizer": [{"state": {}, "param_groups": []}], "scheduler": [], "scaler": None}, path)
    else:
        torch.save({"model": state}, path)


def make_folder(name, folder, lines):
    from TTS.tts.layers.xtts.dvae import DiscreteVAE, dvae_wav_to_mel
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer
    from TTS.tts.models.xtts import Xtts, load_audio
    size, config, draw = SIZES[name], make_config(SIZES[name]), Draw(name)
    make_vocabulary(folder / "vocab.json", size, lines)
    config.save_json(str(folder / "config.json"))

    clips = sorted(CLIPS.glob("*.flac"))[:40]
    waves = [load_audio(str(clip), 22050) for clip in clips]
    stats = draw("mel_stats", (80,), 0.6).abs() + 2.0
    mels = [dvae_wav_to_mel(wave, mel_norms=stats) for wave in waves]

    model = Xtts.init_from_config(config)
    model.tokenizer = VoiceBpeTokenizer(folder / "vocab.json")
    model.init_models()
    model.mel_stats.copy_(stats)
    draw_gpt(model.gpt, draw)
    shared = Draw("decoder")  # the same voice for all sizes; only conv_pre knows the width
    draw_speaker_encoder(model.hifigan_decoder.speaker_encoder, shared,
                         [load_audio(str(clip), 16000) for clip in clips[:8]])
    speaker = torch.nn.functional.normalize(shared("speaker", (1, 512, 1), 1.0), dim=1)
    draw_vocoder(model.hifigan_decoder.waveform_decoder, shared, draw("latents", (1, size.width, 60), 1.0), speaker)
    save_model(folder / "model.pth", size, model, config)

    dvae = DiscreteVAE(channels=80, normalization=None, positional_dims=1, num_tokens=size.codes, codebook_dim=512,
                       hidden_dim=512, num_resnet_blocks=3, kernel_size=3, num_layers=2, use_transposed_convs=False)
    dvae.eval()
    draw_dvae(dvae, Draw("dvae"), mels)
    torch.save(dvae.state_dict(), folder / "dvae.pth")
    torch.save(stats, folder / "mel_stats.pth", _use_new_zipfile_serialization=name != "odd")
    voices = {"Ana Florence": 1, "Wulf Carlevaro": 2, "Nova Hogarth": 3}
    torch.save({voice: {"gpt_cond_latent": draw(f"latent {seed}", (1, 32, size.width), 1.0),
                        "speaker_embedding": torch.nn.functional.normalize(
                            draw(f"embedding {seed}", (1, 512, 1), 1.0), dim=1)}
                for voice, seed in voices.items()}, folder / "speakers_xtts.pth")


def folders(names=tuple(SIZES), say=print):
    """The folders of these sizes, made where they are not in the cache yet: {name: path}."""
    key = fingerprint(__file__, pathlib.Path(__file__).with_name("make_clean_fixtures.py"))
    found, lines = {}, None
    for name in names:
        folder = cache() / name
        mark = folder / "made_by.txt"
        if not mark.exists() or mark.read_text() != key:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            lines = lines or text_of_all_languages()
            say(f"making the folder {name} in {folder}")
            make_folder(name, folder, lines)
            mark.write_text(key)
        found[name] = folder
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    for made in folders(sys.argv[1:] or tuple(SIZES)).values():
        print(made)

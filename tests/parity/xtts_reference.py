#!/usr/bin/env python3
"""What coqui-tts makes of an XTTS folder: every intermediate of one synthesis, as `tandem trace xtts` names them.

    python tests/parity/xtts_reference.py NAME         a size of make_xtts_folders.py; checks the reference by itself

Every number comes out of Coqui's own functions; where a function does not return what is needed, it is caught on its
way. Nothing here is computed a second time by other means, except in the self checks.
"""

import contextlib
import json
import pathlib
import shutil
import sys
import tempfile
import warnings

import tokenizers
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

import make_xtts_folders as made

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()

LENGTH = 104  # codes of a sentence that is cut off
SECOND_CLIP = "conf-placeintoconf"  # beside the voice in the batch whose gradients are compared


@contextlib.contextmanager
def caught(module, name):
    """The values a function of `module` returns while this is open."""
    original, values = getattr(module, name), []

    def wrapper(*arguments, **named):
        values.append(original(*arguments, **named))
        return values[-1].clone()

    setattr(module, name, wrapper)
    try:
        yield values
    finally:
        setattr(module, name, original)


@contextlib.contextmanager
def hooked(module, values, take):
    handle = module.register_forward_hook(
        lambda _, inputs, output: values.append(take(inputs, output).detach().clone()))
    try:
        yield
    finally:
        handle.remove()


class Reference:
    """An XTTS folder opened by coqui-tts."""

    def __init__(self, folder):
        from TTS.tts.configs.xtts_config import XttsConfig
        from TTS.tts.models.xtts import Xtts
        self.folder = pathlib.Path(folder)
        self.config = XttsConfig()
        self.config.load_json(str(self.folder / "config.json"))
        self.model = Xtts.init_from_config(self.config)
        with tempfile.TemporaryDirectory() as work:  # Coqui may write a model.pth anew when it opens it
            shutil.copy(self.folder / "model.pth", work)
            speakers = self.folder / "speakers_xtts.pth"
            self.model.load_checkpoint(self.config, checkpoint_path=pathlib.Path(work) / "model.pth",
                                       vocab_path=self.folder / "vocab.json", speaker_file_path=speakers, eval=True)
        self.model.eval()
        self.gpt = self.model.gpt

    def encode(self, text, language):
        """Normalised text and ids, as Xtts.inference makes them."""
        short, text = language.split("-")[0], text.strip().lower()
        return self.model.tokenizer.preprocess_text(text, short), self.model.tokenizer.encode(text, lang=short)

    def voice(self, path):
        from TTS.tts.models import xtts
        encoder = self.model.hifigan_decoder.speaker_encoder
        waves, mels, powers = [], [], []
        config = self.config
        with caught(xtts, "load_audio") as loaded, caught(xtts, "wav_to_mel_cloning") as pieces, \
                hooked(encoder.torch_spec, waves, lambda inputs, _: inputs[0]), \
                hooked(encoder.instancenorm, powers, lambda inputs, _: inputs[0]), \
                hooked(encoder.instancenorm, mels, lambda _, output: output):
            latent, embedding = self.model.get_conditioning_latents(
                audio_path=str(path), max_ref_length=config.max_ref_len, gpt_cond_len=config.gpt_cond_len,
                gpt_cond_chunk_len=config.gpt_cond_chunk_len, sound_norm_refs=config.sound_norm_refs)
        return {"audio_22k": loaded[0], "mel_cond": torch.cat(pieces, dim=-1), "mel_cond.first": pieces[0],
                "audio_16k": waves[0], "mel_speaker": mels[0], "mel_speaker.log": powers[0],
                "gpt_cond_latent": latent, "speaker_embedding": embedding}

    def codes_of_clip(self, wave):
        """mel_dvae and dvae_codes, as GPTTrainer.format_batch_on_device makes them."""
        from TTS.tts.layers.tortoise.arch_utils import TorchMelSpectrogram
        from TTS.tts.layers.xtts.dvae import DiscreteVAE
        dvae = DiscreteVAE(
            channels=80, normalization=None, positional_dims=1, codebook_dim=512, hidden_dim=512, num_resnet_blocks=3,
            kernel_size=3, num_layers=2, use_transposed_convs=False,
            num_tokens=self.config.model_args.gpt_num_audio_tokens - 2)
        dvae.eval()
        dvae.load_state_dict(torch.load(self.folder / "dvae.pth", weights_only=True), strict=False)
        transform = TorchMelSpectrogram(mel_norm_file=str(self.folder / "mel_stats.pth"),
                                        sampling_rate=self.config.audio.dvae_sample_rate)
        with torch.no_grad():
            mel = transform(wave)
            nearest = -torch.cdist(dvae.encoder(mel)[0].T.double(), dvae.codebook.embed.T.double())
            best = nearest.topk(2, dim=1).values
            return {"mel_dvae": mel, "dvae_codes": dvae.get_codebook_indices(mel),
                    "dvae_margins": (best[:, 0] - best[:, 1]).float()}

    @torch.inference_mode()
    def generate(self, ids, latent, length):
        """Greedy codes with the folder's repetition penalty through Hugging Face's generate(): codes, raw logits, the
        margin of the choice after the penalty, and the hidden states of each step."""
        steps = []
        with hooked(self.gpt.final_norm, steps, lambda _, output: output[:, -1]):
            codes, found = self.gpt.generate(
                cond_latents=latent, text_inputs=torch.IntTensor(ids).unsqueeze(0), do_sample=False, num_beams=1,
                num_return_sequences=1, repetition_penalty=float(self.config.repetition_penalty),
                output_attentions=False, return_dict_in_generate=True, output_logits=True, output_scores=True,
                max_new_tokens=min(length, self.gpt.max_gen_mel_tokens))
        best = torch.cat(found.scores).topk(2, dim=1).values
        return {"codes": codes, "logits": torch.cat(found.logits), "margins": best[:, 0] - best[:, 1],
                "step_latents": torch.cat(steps)}

    @torch.inference_mode()
    def latents(self, ids, codes, latent):
        ids = torch.IntTensor(ids).unsqueeze(0)
        return self.gpt(ids, torch.tensor([ids.shape[-1]]), codes.clone(),
                        torch.tensor([codes.shape[-1] * self.gpt.code_stride_len]), cond_latents=latent,
                        return_attentions=False, return_latent=True)

    @torch.inference_mode()
    def wav(self, latents, embedding):
        return self.model.hifigan_decoder(latents, g=embedding).squeeze()

    def speak(self, text, language, voice, length=LENGTH):
        normalised, ids = self.encode(text, language)
        found = self.generate(ids, voice["gpt_cond_latent"], length)
        found["latents"] = self.latents(ids, found["codes"], voice["gpt_cond_latent"])
        found["wav"] = self.wav(found["latents"], voice["speaker_embedding"])
        found["text_ids"] = torch.tensor(ids)
        return normalised, found

    def teacher_forced(self, ids, lengths, codes, wave_lengths, cond_mels, latent=None):
        """GPT.forward as GPTTrainer.eval_step calls it; `latent` stands for what it makes of cond_mels."""
        text_logits = []
        with hooked(self.gpt.text_head, text_logits, lambda _, output: output.permute(0, 2, 1)):
            loss_text, loss_mel, mel_logits = self.gpt(ids, lengths, codes.clone(), wave_lengths, cond_mels=cond_mels,
                                                       cond_latents=latent)
        return {"loss_text": loss_text, "loss_mel": loss_mel, "text_logits": text_logits[0], "mel_logits": mel_logits}

    def gradients(self, batch):
        self.gpt.zero_grad(set_to_none=True)
        found = self.teacher_forced(batch["text_ids"], batch["text_lengths"], batch["codes"], batch["wave_lengths"],
                                    batch["cond_mels"].unsqueeze(1))
        (0.01 * found["loss_text"] + found["loss_mel"]).backward()
        found = {name: value.detach() for name, value in found.items()}
        for name, value in self.gpt.named_parameters():
            if value.grad is not None:
                found[f"grad/gpt.{name}"] = value.grad
        return found


def make_batch(reference, voice, first, size):
    """Two clips of different lengths with their texts, padded, and 2 s of each as conditioning."""
    from TTS.tts.models.xtts import load_audio, wav_to_mel_cloning
    language = size.texts[0][0]
    second_wave = load_audio(str(made.CLIPS / f"{SECOND_CLIP}.flac"), 22050)
    waves = [voice["audio_22k"], second_wave]
    codes = [first["dvae_codes"][0], reference.codes_of_clip(second_wave)["dvae_codes"][0]]
    ids = [torch.tensor(reference.encode(text, language)[1]) for text in (size.texts[0][1], "uno 2 three.")]
    mels = [wav_to_mel_cloning(wave[:, 5000:49100], mel_norms=reference.model.mel_stats, n_fft=2048, hop_length=256,
                               win_length=1024) for wave in waves]
    pad = torch.nn.utils.rnn.pad_sequence
    return {"text_ids": pad(ids, batch_first=True), "text_lengths": torch.tensor([len(row) for row in ids]),
            "codes": pad(codes, batch_first=True), "wave_lengths": torch.tensor([wave.shape[-1] for wave in waves]),
            "cond_mels": torch.cat(mels)}


def record(name, folder):
    """Everything compare_xtts.py holds Tandem against: {file name: (tensors, metadata)}."""
    size, reference = made.SIZES[name], Reference(folder)
    path = made.CLIPS / f"{size.voice}.flac"
    voice = reference.voice(path)
    voice.update(reference.codes_of_clip(voice["audio_22k"]))
    result = {"voice": (voice, {})}
    for at, (language, text) in enumerate(size.texts):
        last = at + 1 == len(size.texts)
        normalised, found = reference.speak(text, language, voice, reference.gpt.max_gen_mel_tokens if last else LENGTH)
        if at == 0:
            ids = found["text_ids"].unsqueeze(0)
            with torch.no_grad():
                found.update(reference.teacher_forced(
                    ids, torch.tensor([ids.shape[1]]), voice["dvae_codes"],
                    torch.tensor([voice["audio_22k"].shape[-1]]), voice["mel_cond"].unsqueeze(1),
                    voice["gpt_cond_latent"]))
        result[f"text{at}"] = (found, {"language": language, "text": text, "normalised": normalised})
    batch = make_batch(reference, voice, voice, size)
    result["batch"] = (batch, {})
    result["gradients"] = (reference.gradients(batch), {})
    return result, reference


def recorded(name, folder, say=print):
    """The same, from the cache where it is there: {file name: path}."""
    here = pathlib.Path(__file__).resolve()
    where, key = made.cache() / f"{name}-reference", made.fingerprint(here, made.__file__)
    mark = where / "made_by.txt"
    if not mark.exists() or mark.read_text() != key:
        say(f"running coqui-tts on {folder}")
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True)
        for file, (tensors, metadata) in record(name, folder)[0].items():
            save_file({key: value.detach().clone().contiguous() for key, value in tensors.items()},
                      where / f"{file}.safetensors",
                      metadata={**metadata, "versions": json.dumps(made.versions())})
        mark.write_text(key)
    return {path.stem: path for path in sorted(where.glob("*.safetensors"))}


def read(path):
    """Tensors and metadata."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}


def penalised_without_prompt(logits, codes, penalty):
    """The choice of each step if only codes already said were penalised."""
    chosen = []
    for at, row in enumerate(logits.clone()):
        said = codes[:at].unique()
        row[said] = torch.where(row[said] < 0, row[said] * penalty, row[said] / penalty)
        chosen.append(row.argmax())
    return torch.stack(chosen)


def first_merge_wins(path):
    """The tokenizer as one gets it who lets the first of two equal merges count."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"]["merges"] = list(dict.fromkeys(content["model"]["merges"]))
    return tokenizers.Tokenizer.from_str(json.dumps(content))


def check(name):
    """The reference against itself. Prints a line a check and returns whether all hold."""
    folder = made.folders([name])[name]
    result, reference = record(name, folder)
    size, voice, good = made.SIZES[name], result["voice"][0], []

    def say(what, holds, value):
        good.append(bool(holds))
        print(f"{name} {what} ... {'ok' if holds else 'FAILED'} ({value})", flush=True)

    for at, (language, text) in enumerate(size.texts):
        found = result[f"text{at}"][0]
        codes, last = found["codes"][0], at + 1 == len(size.texts)
        stopped = codes[-1].item() == reference.gpt.stop_audio_token
        say(f"text {at} has 100 codes or more", len(codes) >= 100, len(codes))
        say(f"text {at} ends {'by the stop token' if last else 'at the limit'}", stopped == last, codes[-1].item())
        say(f"text {at} has many different codes", codes.unique().numel() > 40, codes.unique().numel())
        say(f"text {at} leaves a margin", found["margins"].min() > 1e-4, f"{found['margins'].min():.2e}")
        unknown = (found["text_ids"] == 1).float().mean().item()
        say(f"text {at} is known to the vocabulary", unknown < 0.1, f"{unknown:.2f} unknown")
        without = penalised_without_prompt(found["logits"], codes, reference.config.repetition_penalty)
        say(f"text {at} depends on the penalty over the prompt's ids", (without != codes).any(),
            f"{(without != codes).sum()} steps")
        apart = (found["step_latents"] - found["latents"][0]).abs().max().item()
        say(f"text {at}, latents of the steps equal those of the second pass", apart < 2e-5, f"{apart:.1e}")
        inferred = reference.model.inference(
            text, language, voice["gpt_cond_latent"], voice["speaker_embedding"], do_sample=False,
            repetition_penalty=float(reference.config.repetition_penalty),
            max_new_tokens=len(codes))["wav"] if at == 0 or last else None
        if inferred is not None:
            apart = (torch.from_numpy(inferred) - found["wav"]).abs().max().item()
            say(f"text {at}, inference() gives the same wave", apart == 0.0, f"{apart:.1e}")
        say(f"text {at} sounds", 0.05 < found["wav"].std() < 0.7, f"deviation {found['wav'].std():.2f}")
    if size.odd_vocabulary:
        other, right = first_merge_wins(folder / "vocab.json"), reference.model.tokenizer.tokenizer
        texts = made.text_of_all_languages()
        changed = sum(other.encode(text).ids != right.encode(text).ids for text in texts)
        say("the vocabulary tells which of two equal merges counts", changed > 100, f"{changed} of {len(texts)} texts")
    spread = voice["dvae_codes"].unique().numel()
    say("the DVAE's codes vary", spread > 40, f"{spread} of {voice['dvae_codes'].numel()}")
    gradients = result["gradients"][0]
    none = [key for key, _ in reference.gpt.named_parameters() if f"grad/gpt.{key}" not in gradients]
    say("every parameter has a gradient", none == [], none)
    return all(good)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(0 if all([check(name) for name in sys.argv[1:] or made.SIZES]) else 1)

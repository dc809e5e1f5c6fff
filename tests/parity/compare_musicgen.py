#!/usr/bin/env python3
"""Holds Tandem's MusicGen against transformers on random folders of three sizes, on the CPU in float32, one thread.

    python tests/parity/compare_musicgen.py BUILD [--size NAME]... [--tandem PROGRAM] [--keep DIR]

Everything of Tandem's comes out of `tandem trace musicgen`. Prints a line an item, with the difference and what is
allowed, and exits with 1 when one fails.
"""

import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import soundfile
import torch
import transformers
from safetensors.torch import load_file
from transformers import MusicgenForConditionalGeneration, T5TokenizerFast
from transformers.models.encodec.feature_extraction_encodec import EncodecFeatureExtractor

import make_musicgen_folders as made

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATES, LOGITS, WAVE = 1e-4, 1e-4, 80  # largest differences allowed; dB at least


class Failed(Exception):
    """A program that was asked did not answer."""


class Comparison:
    def __init__(self, options, work):
        self.work, self.passed, self.failed = work, 0, 0
        self.program = options.tandem or pathlib.Path(options.build) / "bin" / "tandem"
        self.environment = {"TANDEM_CONFIG_DIR": str(ROOT / "configs"), **os.environ, "OMP_NUM_THREADS": "1"}

    def say(self, name, good, found):
        self.passed += bool(good)
        self.failed += not good
        print(f"{name} ... {'ok' if good else 'FAILED'} ({found})", flush=True)

    def near(self, name, ours, theirs, allowed):
        if ours is None or ours.shape != theirs.shape:
            self.say(name, False, f"shape {None if ours is None else list(ours.shape)}, expected {list(theirs.shape)}")
            return
        found = (ours.double() - theirs.double()).abs().max().item()
        self.say(name, found <= allowed, f"{found:.1e}, allowed {allowed:.0e}")

    def equal(self, name, ours, theirs):
        if ours is None or ours.shape != theirs.shape:
            self.say(name, False, f"shape {None if ours is None else list(ours.shape)}, expected {list(theirs.shape)}")
            return
        differ = int((ours != theirs).sum())
        self.say(name, differ == 0, f"{theirs.numel()} numbers, {differ} differ")

    def loud(self, name, ours, theirs, least):
        """The signal-to-noise ratio in dB."""
        if ours.shape != theirs.shape:
            self.say(name, False, f"shape {list(ours.shape)}, expected {list(theirs.shape)}")
            return
        noise = (ours.double() - theirs.double()).square().sum().item()
        ratio = math.inf if noise == 0 else 10 * math.log10(theirs.double().square().sum().item() / noise)
        self.say(name, ratio >= least, f"{ratio:.1f} dB, at least {least}")

    def trace(self, folder, captions, tokens, *more):
        out = self.work / "trace.safetensors"
        words = [self.program, "trace", "musicgen", "--model", folder, "--max-new-tokens", tokens, "--out", out, *more]
        for caption in captions:
            words += ["--prompt", caption]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=self.environment, timeout=300)
        if done.returncode != 0:
            raise Failed(f"`tandem trace musicgen` ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return load_file(out)


class Reference:
    """A folder opened by transformers, and what its generate() goes through."""

    def __init__(self, folder):
        self.model = MusicgenForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = T5TokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), extra_ids=0)
        config = self.model.config
        self.channels = config.decoder.audio_channels
        self.features = EncodecFeatureExtractor(feature_size=self.channels, padding_side="left",
                                                sampling_rate=config.audio_encoder.sampling_rate)

    def text(self, captions):
        batch = self.tokenizer(list(captions), padding=True, return_tensors="pt")
        states = self.model.text_encoder(batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
        return batch, states

    def generate(self, captions, tokens, seed=0, sounds=(), **named):
        """Names as in the trace. Tokens and logits are caught on their way through generate()."""
        decoder, audio, caught = self.model.decoder, self.model.audio_encoder, {}
        batch, _ = self.text(captions)
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        if len(sounds):
            rate = self.model.config.audio_encoder.sampling_rate
            inputs.update(self.features([sound.squeeze() for sound in sounds], sampling_rate=rate, padding=True,
                                        return_tensors="pt"))
        masked, sides, forward = decoder.apply_delay_pattern_mask, [], decoder.forward

        def mask(ids, pattern):
            caught["tokens"] = masked(ids, pattern)
            return caught["tokens"]

        def step(*arguments, **more):
            output = forward(*arguments, **more)
            caught.setdefault("logits", output.logits[:, -1])
            return output

        decode = audio.decode

        def sound(codes, *arguments, **more):
            sides.append(codes[0])
            return decode(codes, *arguments, **more)

        encode, prompts = audio.encode, []

        def read(*arguments, **more):
            output = encode(*arguments, **more)
            prompts.append(output.audio_codes[0])
            return output

        decoder.apply_delay_pattern_mask, decoder.forward, audio.decode, audio.encode = mask, step, sound, read
        try:
            torch.manual_seed(seed)
            caught["wav"] = self.model.generate(**inputs, max_new_tokens=tokens, **named)
        finally:
            del decoder.apply_delay_pattern_mask, decoder.forward, audio.decode, audio.encode
        count = decoder.num_codebooks
        caught["tokens"] = caught["tokens"].view(len(captions), count, -1)
        logits = caught.pop("logits")
        logits = logits.view(-1, len(captions), count, logits.shape[-1])
        caught["logits_cond"] = logits[0]
        if len(logits) > 1:
            caught["logits_uncond"] = logits[1]
            guidance = named.get("guidance_scale", self.model.generation_config.guidance_scale)
            caught["logits_cfg"] = logits[1] + (logits[0] - logits[1]) * guidance
        caught["codes"] = self.interleave(sides)
        if prompts:
            caught["prompt_codes"] = self.interleave(prompts)
        return caught

    def interleave(self, sides):
        return sides[0] if self.channels == 1 else torch.stack(sides, 2).flatten(1, 2)


def compare_run(comparison, title, ours, theirs, first_step=False):
    comparison.equal(f"{title} tokens", ours.get("tokens"), theirs["tokens"])
    comparison.equal(f"{title} codes", ours.get("codes"), theirs["codes"])
    comparison.loud(f"{title} wav", ours["wav"], theirs["wav"], WAVE)
    if first_step:
        for name in ("logits_cond", "logits_uncond", "logits_cfg"):
            if name in theirs:
                comparison.near(f"{title} {name}", ours.get(name), theirs[name], LOGITS)


def compare_text(comparison, name, folder, reference):
    captions = [*made.CAPTIONS, "", "émigré 電子音楽 \n and a new line"]
    ours = comparison.trace(folder, captions, 1, "--greedy")
    batch, states = reference.text(captions)
    comparison.equal(f"{name}: text_ids", ours["text_ids"], batch.input_ids)
    comparison.equal(f"{name}: text_mask", ours["text_mask"], batch.attention_mask)
    comparison.near(f"{name}: text_states", ours["text_states"], states, STATES)


def compare_greedy(comparison, name, folder, reference):
    for tokens in (5, 12, 40):
        ours = comparison.trace(folder, made.CAPTIONS, tokens, "--greedy", "--guidance-scale", 3)
        theirs = reference.generate(made.CAPTIONS, tokens, do_sample=False, guidance_scale=3.0)
        compare_run(comparison, f"{name}, greedy, {tokens}:", ours, theirs, first_step=tokens == 12)
    ours = comparison.trace(folder, made.CAPTIONS, 12, "--greedy", "--guidance-scale", 1)
    theirs = reference.generate(made.CAPTIONS, 12, do_sample=False, guidance_scale=1.0)
    compare_run(comparison, f"{name}, greedy, without guidance:", ours, theirs, first_step=True)
    ours = comparison.trace(folder, ["", *made.CAPTIONS[1:]], 12, "--greedy")
    theirs = reference.generate(["", *made.CAPTIONS[1:]], 12, do_sample=False)
    compare_run(comparison, f"{name}, greedy, an empty caption:", ours, theirs)


def compare_sampled(comparison, name, folder, reference):
    ways = {"top-k 50": (["--top-k", 50], dict(top_k=50)),
            "all codes": (["--top-k", 0], dict(top_k=0)),
            "top-k 250, top-p 0.9, temperature 1.2": (["--top-k", 250, "--top-p", 0.9, "--temperature", 1.2],
                                                      dict(top_k=250, top_p=0.9, temperature=1.2)),
            "top-p 0.3": (["--top-k", 0, "--top-p", 0.3], dict(top_k=0, top_p=0.3)),
            "as the folder says": ([], {})}
    for seed, (way, (words, named)) in enumerate(ways.items(), 7):
        ours = comparison.trace(folder, made.CAPTIONS, 40, "--rng", "hf", "--seed", seed, *words)
        theirs = reference.generate(made.CAPTIONS, 40, seed=seed, do_sample=True, **named)
        compare_run(comparison, f"{name}, drawn, {way}:", ours, theirs)


def compare_length(comparison, name, folder, reference):
    for tokens, frames in ((1503, 1500), (5, 5)):
        kept = reference.model.decoder.num_codebooks // reference.channels
        frames = frames if kept == 4 else tokens - kept + 1
        ours = comparison.trace(folder, made.CAPTIONS[1:2], tokens, "--rng", "hf", "--seed", 3)
        comparison.say(f"{name}: {tokens} tokens", ours["codes"].shape[2] == frames, f"{ours['codes'].shape[2]} frames")
        theirs = reference.generate(made.CAPTIONS[1:2], tokens, seed=3, do_sample=True)
        compare_run(comparison, f"{name}, {tokens}:", ours, theirs)


def prompt_sounds(reference, lengths, seed):
    """Sounds of the model's own, so that their codes are clear: [channels, samples] each."""
    generator = torch.Generator().manual_seed(seed)
    codec = reference.model.audio_encoder
    sounds = []
    for frames in lengths:
        sides = []
        for _ in range(reference.channels):
            codes = torch.randint(0, codec.config.codebook_size, (1, 1, codec.config.num_quantizers, frames + 1),
                                  generator=generator)
            samples = int((frames + 0.3) * codec.config.hop_length)
            sides.append(codec.decode(codes, [None]).audio_values[0, 0, :samples])
        sounds.append(torch.stack(sides).numpy().astype(np.float32))
    return sounds


def margin(reference, sounds):
    """The least difference between the squared distances to the nearest and the second code, of all frames."""
    codec, least = reference.model.audio_encoder, math.inf
    longest = max(sound.shape[1] for sound in sounds)
    for sound in sounds:
        for side in sound:
            padded = torch.nn.functional.pad(torch.tensor(side), (longest - len(side), 0))[None, None]
            rest = codec.encoder(padded)[0].T.double()
            for layer in codec.quantizer.layers[:codec.config.num_quantizers]:
                book = layer.codebook.embed.double()
                two = torch.cdist(rest, book).square().topk(2, largest=False)
                least = min(least, (two.values[:, 1] - two.values[:, 0]).min().item())
                rest = rest - book[two.indices[:, 0]]
    return least


def compare_continued(comparison, name, folder, reference):
    rate = reference.model.config.audio_encoder.sampling_rate
    for lengths in ((21,), (9, 14, 6)):
        sounds = max((prompt_sounds(reference, lengths, seed) for seed in range(6)),
                     key=lambda sounds: margin(reference, sounds))
        files = []
        for i, sound in enumerate(sounds):
            files.append(comparison.work / f"prompt-{i}.wav")
            soundfile.write(files[-1], sound.T, rate, subtype="FLOAT")
        words = [word for file in files for word in ("--audio-prompt", file)]
        captions = made.CAPTIONS[: len(sounds)]
        title = f"{name}, continued from {'+'.join(map(str, lengths))} frames (margin {margin(reference, sounds):.0e})"
        ours = comparison.trace(folder, captions, 12, "--greedy", *words)
        theirs = reference.generate(captions, 12, sounds=sounds, do_sample=False)
        comparison.equal(f"{title}: prompt_codes", ours.get("prompt_codes"), theirs["prompt_codes"])
        compare_run(comparison, f"{title}:", ours, theirs)
        ours = comparison.trace(folder, captions, 12, "--rng", "hf", "--seed", 5, *words)
        theirs = reference.generate(captions, 12, seed=5, sounds=sounds, do_sample=True)
        compare_run(comparison, f"{title}, drawn:", ours, theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--size", action="append", choices=list(made.SIZES))
    parser.add_argument("--keep", help="a folder for the models and traces")
    parser.add_argument("--tandem", help="another program than BUILD/bin/tandem")
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary, torch.no_grad():
        work = pathlib.Path(options.keep or temporary)
        work.mkdir(parents=True, exist_ok=True)
        comparison = Comparison(options, work)
        for name, folder in made.make_all(work, options.size or ()).items():
            reference = Reference(folder)
            for part in (compare_text, compare_greedy, compare_sampled, compare_length, compare_continued):
                try:
                    part(comparison, name, folder, reference)
                except (Failed, subprocess.TimeoutExpired) as error:
                    comparison.say(f"{name}, {part.__name__}", False, str(error))
    print(f"{comparison.passed} passed, {comparison.failed} failed, {time.monotonic() - started:.0f} s")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())

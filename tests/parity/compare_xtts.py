#!/usr/bin/env python3
"""Holds Tandem's XTTS against coqui-tts on random folders of three sizes, on the CPU in float32, one thread.

    python tests/parity/compare_xtts.py BUILD [--size NAME]... [--only PART]... [--keep DIR]

Parts: trace (the whole chain, through `tandem trace`), parts (GPT, vocoder and gradients from the reference's own
inputs, through parity_xtts), text (13 languages), stream (`tandem synthesize`, whole and streamed), convert (folders
exported to both formats). Prints a line an item, with the difference and what is allowed, and exits with 1 when one
fails. The folders and what coqui-tts says of them are kept in the cache: the first run takes some two minutes more.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import soundfile
import torch
from safetensors.torch import save_file

import make_xtts_folders as made
import xtts_reference
from make_clean_fixtures import WORDS, reference as coqui_cleaner, sentences

LANGUAGES = "en es fr de it pt pl tr ru nl cs hu ar".split()
PARTS = ("trace", "parts", "text", "stream", "convert")
TIE = 1e-4  # a greedy choice closer than this may fall either way

# The largest differences allowed, from the same inputs (coqui-tts in float32 and in float64 are some five times nearer)
AUDIO, MEL, SPEAKER_MEL, EMBEDDING, CONDITIONING = 3e-5, 2e-4, 5e-4, 1e-5, 3e-4
LATENTS, LOGITS, LOSS, GRADIENT = 5e-5, 1e-4, 1e-4, 1e-3
# ... and of the GPT's output where each side made the voice from sound.
LATENTS_OF_SOUND, LOGITS_OF_SOUND = 1e-4, 2e-4
WAVE, WAVE_OF_LATENTS, WAVE_STREAMED = 70, 90, 90  # dB, at least


class Failed(Exception):
    """A program that was asked did not answer."""


class Comparison:
    def __init__(self, options, work):
        self.work, self.passed, self.failed, self.options = work, 0, 0, options
        binaries = pathlib.Path(options.build) / "bin"
        self.programs = {"tandem": options.tandem or binaries / "tandem",
                         "parity_xtts": options.tool or binaries / "parity_xtts",
                         "parity_clean": binaries / "parity_clean", "parity_tokenize": binaries / "parity_tokenize"}
        self.environment = {"TANDEM_CONFIG_DIR": str(made.ROOT / "configs"), **os.environ, "OMP_NUM_THREADS": "1"}

    def say(self, name, good, found):
        self.passed += bool(good)
        self.failed += not good
        print(f"{name} ... {'ok' if good else 'FAILED'} ({found})", flush=True)

    def at_most(self, name, found, allowed):
        if isinstance(found, str):
            self.say(name, False, found)
        else:
            self.say(name, found <= allowed, f"{found:.1e}, allowed {allowed:.0e}")

    def loud(self, name, ours, expected, least):
        """The signal-to-noise ratio in dB."""
        ours, expected = ours.reshape(-1).double(), expected.reshape(-1).double()
        if len(ours) != len(expected):
            self.say(name, False, f"{len(ours)} samples, expected {len(expected)}")
            return
        noise = (ours - expected).square().sum().item()
        ratio = float("inf") if noise == 0 else 10 * np.log10(expected.square().sum().item() / noise)
        self.say(name, ratio >= least, f"{ratio:.1f} dB, at least {least}")

    def run(self, program, *words, binary=False, **named):
        started = time.monotonic()
        try:
            done = subprocess.run([self.programs[program], *map(str, words)], capture_output=True,
                                  text=not binary, env=self.environment, timeout=300, **named)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(str(error)) from error
        if done.returncode != 0:
            message = done.stderr if not binary else done.stderr.decode(errors="replace")
            last = (message.strip() or "no message").splitlines()
            raise Failed(f"`{program} {words[0] if words else ''}` ended with {done.returncode}: {' '.join(last[-2:])}")
        if self.options.times:
            print(f"    {program} {' '.join(map(str, words[:2]))}: {time.monotonic() - started:.1f} s")
        return done.stdout

    def tool(self, mode, folder, tensors):
        """The answer of parity_xtts to these tensors."""
        source, target = self.work / f"{mode}-in.safetensors", self.work / f"{mode}-out.safetensors"
        save_file({name: value.contiguous() for name, value in tensors.items()}, source)
        self.run("parity_xtts", mode, folder, source, target)
        return xtts_reference.read(target)[0]


def largest(ours, *accepted):
    """The largest difference from the nearest of the accepted forms; a sentence when none has the shape."""
    if ours is None:
        return "not in the trace"
    shapes, found = [], []
    for expected in accepted:
        mine, theirs = ours.squeeze(), expected.squeeze()
        shapes.append(list(theirs.shape))
        if mine.shape != theirs.shape and mine.dim() == 2 and mine.T.shape == theirs.shape:
            mine = mine.T
        if mine.shape == theirs.shape:
            found.append((mine.double() - theirs.double()).abs().max().item())
    return min(found) if found else f"shape {list(ours.shape)}, expected {' or '.join(map(str, shapes))}"


def without_stop(codes, stop):
    codes = codes.reshape(-1).tolist()
    return codes[:-1] if codes and codes[-1] == stop else codes


def compare_choices(comparison, name, ours, expected, margins):
    """Equal, or apart for the first time where the reference itself was undecided. Returns how many are equal."""
    differ = [at for at in range(max(len(ours), len(expected)))
              if at >= min(len(ours), len(expected)) or ours[at] != expected[at]]
    if not differ:
        comparison.say(name, True, f"{len(expected)} equal")
        return len(expected)
    first = differ[0]
    margin = margins[first].item() if first < len(margins) else 0.0
    tie = margin < TIE
    comparison.say(name, tie, f"{len(ours)} and {len(expected)}, apart from {first} on, where the reference's margin "
                              f"is {margin:.1e}{': a tie; what follows is compared from its own codes' if tie else ''}")
    return first


def trace(comparison, name, folder, text, out, more=(), limit=None):
    size = made.SIZES[name]
    language, words = size.texts[text]
    last = text + 1 == len(size.texts)
    limit = limit or (size.max_audio - 3 if last else xtts_reference.LENGTH)
    comparison.run("tandem", "trace", "xtts", "--model", folder, "--voice", made.CLIPS / f"{size.voice}.flac",
                   "--language", language, "--text", words, "--out", out, "--greedy", "--max-codes", limit, *more)
    return xtts_reference.read(out)


def compare_voice(comparison, title, ours, voice):
    """The voice file's sound, mels, conditioning and DVAE codes."""
    say = comparison.at_most
    say(f"{title} audio_22k", largest(ours.get("audio_22k"), voice["audio_22k"]), AUDIO)
    say(f"{title} mel_dvae", largest(ours.get("mel_dvae"), voice["mel_dvae"]), MEL)
    say(f"{title} mel_cond", largest(ours.get("mel_cond"), voice["mel_cond"], voice["mel_cond.first"]), MEL)
    say(f"{title} audio_16k", largest(ours.get("audio_16k"), voice["audio_16k"]), AUDIO)
    say(f"{title} mel_speaker", largest(ours.get("mel_speaker"), voice["mel_speaker"], voice["mel_speaker.log"]),
        SPEAKER_MEL)
    say(f"{title} gpt_cond_latent", largest(ours.get("gpt_cond_latent"), voice["gpt_cond_latent"]), CONDITIONING)
    say(f"{title} speaker_embedding", largest(ours.get("speaker_embedding"), voice["speaker_embedding"]), EMBEDDING)
    if "dvae_codes" in ours:
        compare_codes_of_clip(comparison, f"{title} dvae_codes", ours["dvae_codes"], voice)
    else:
        comparison.say(f"{title} dvae_codes", False, "not in the trace")


def compare_codes_of_clip(comparison, name, ours, voice):
    """Each code by itself: a tie changes no other."""
    ours, expected = ours.reshape(-1), voice["dvae_codes"].reshape(-1)
    if len(ours) != len(expected):
        comparison.say(name, False, f"{len(ours)} codes, expected {len(expected)}")
        return
    differ = ours != expected
    decided = differ & (voice["dvae_margins"] >= 1e-3)
    comparison.say(name, not decided.any(), f"{len(ours)} codes, {int(differ.sum())} differ, "
                                            f"{int(decided.sum())} of them no tie")


def compare_speech(comparison, title, ours, metadata, expected, facts, stop):
    comparison.say(f"{title} normalised text", facts["normalised"] in metadata.values(),
                   repr(facts["normalised"]) if facts["normalised"] in metadata.values() else f"not in {metadata}")
    for needed in ("text_ids", "codes", "logits", "latents", "wav"):
        if needed not in ours:
            comparison.say(f"{title} {needed}", False, "not in the trace")
            return
    ids = ours["text_ids"].reshape(-1).tolist()
    comparison.say(f"{title} text_ids", ids == expected["text_ids"].tolist(), f"{len(ids)} ids")
    codes = without_stop(expected["codes"], stop)
    equal = compare_choices(comparison, f"{title} codes", without_stop(ours["codes"], stop), codes,
                            expected["margins"])
    if equal < len(codes):
        return  # what follows a tie is compared by compare_parts, from the reference's codes
    comparison.at_most(f"{title} logits", largest(ours["logits"], expected["logits"]), LOGITS_OF_SOUND)
    comparison.at_most(f"{title} latents", largest(ours["latents"], expected["latents"]), LATENTS_OF_SOUND)
    comparison.loud(f"{title} wav", ours["wav"], expected["wav"], WAVE)


def compare_trace(comparison, name, folder, files):
    size, voice = made.SIZES[name], xtts_reference.read(files["voice"])[0]
    stop = size.codes + 1 if size.stop is None else size.stop
    for text in range(len(size.texts)):
        title = f"{name}, text {text}:"
        expected, facts = xtts_reference.read(files[f"text{text}"])
        ours, metadata = trace(comparison, name, folder, text, comparison.work / f"{name}-{text}.safetensors",
                               ["--teacher-forced"] if text == 0 else [])
        if text == 0:
            compare_voice(comparison, f"{name}, voice:", ours, voice)
            for loss in ("loss_text", "loss_mel"):
                comparison.at_most(f"{title} {loss}", largest(ours.get(loss), expected[loss]), LOSS)
            for logits in ("text_logits", "mel_logits"):
                comparison.at_most(f"{title} {logits}", largest(ours.get(logits), expected[logits]), LOGITS_OF_SOUND)
        compare_speech(comparison, title, ours, metadata, expected, facts, stop)


def compare_parts(comparison, name, folder, files):
    """Each part from the reference's own inputs, so that nothing before it counts."""
    voice = xtts_reference.read(files["voice"])[0]
    for text in range(len(made.SIZES[name].texts)):
        title = f"{name}, text {text}, from the reference's inputs:"
        expected = xtts_reference.read(files[f"text{text}"])[0]
        ours = comparison.tool("latents", folder, {"text_ids": expected["text_ids"], "codes": expected["codes"],
                                                   "gpt_cond_latent": voice["gpt_cond_latent"]})
        comparison.at_most(f"{title} latents", largest(ours["latents"], expected["latents"]), LATENTS)
        comparison.at_most(f"{title} logits", largest(ours["logits"], expected["logits"]), LOGITS)
    given = {"latents": expected["latents"], "speaker_embedding": voice["speaker_embedding"]}
    whole = comparison.tool("sound", folder, given)["wav"]
    comparison.loud(f"{title} wav", whole, expected["wav"], WAVE_OF_LATENTS)
    comparison.loud(f"{title} wav in windows", comparison.tool("window", folder, given)["wav"], whole, WAVE_STREAMED)
    compare_gradients(comparison, name, folder, files)


def compare_gradients(comparison, name, folder, files):
    expected = xtts_reference.read(files["gradients"])[0]
    ours = comparison.tool("gradients", folder, xtts_reference.read(files["batch"])[0])
    title = f"{name}, batch of two:"
    for item, allowed in (("loss_text", LOSS), ("loss_mel", LOSS), ("text_logits", LOGITS), ("mel_logits", LOGITS)):
        comparison.at_most(f"{title} {item}", largest(ours.get(item), expected[item]), allowed)
    wanted = {key for key in expected if key.startswith("grad/")}
    found = {key for key in ours if key.startswith("grad/")}
    comparison.say(f"{title} names of the gradients", wanted == found,
                   f"{len(found)} of {len(wanted)}" + "".join(f", {key}" for key in sorted(wanted ^ found)[:4]))
    norms, whole = [], []
    total = torch.stack([expected[key].double().norm() for key in wanted]).norm().item()
    for key in sorted(wanted & found):
        mine, theirs = ours[key].double(), expected[key].double()
        if mine.shape != theirs.shape:
            comparison.say(f"{title} {key}", False, f"shape {list(mine.shape)}, expected {list(theirs.shape)}")
            continue
        size = max(theirs.norm().item(), 1e-6 * total)  # nothing is resolved below that
        norms.append((abs(mine.norm().item() - theirs.norm().item()) / size, key))
        whole.append(((mine - theirs).norm().item() / size, key))
    for what, values in (("norms", norms), ("values", whole)):
        worst, key = max(values)
        comparison.at_most(f"{title} {what} of {len(values)} gradients, worst {key.removeprefix('grad/')}", worst,
                           GRADIENT)


def compare_text(comparison, folders, references):
    clean = coqui_cleaner()
    for language in LANGUAGES:
        texts = [WORDS[language]] + [text for size in made.SIZES.values() for spoken, text in size.texts
                                     if spoken == language] + sentences(language, 60, seed=77)
        texts = [text.strip().lower() for text in texts]
        requests = "".join(json.dumps({"language": language, "style": "coqui", "text": text}) + "\n" for text in texts)
        answers = [json.loads(line) for line in comparison.run("parity_clean", input=requests).splitlines()]
        expected = [clean(text, language) for text in texts]
        differ = [(text, theirs, ours) for text, theirs, ours in zip(texts, expected, answers, strict=True)
                  if ours.get("text") != theirs]
        comparison.say(f"{language}: normalised text", not differ, f"{len(texts)} texts, {len(differ)} differ")
        for text, theirs, ours in differ[:3]:
            print(f"    {text!r}\n      coqui  {theirs!r}\n      tandem {ours}")
        kept = [(text, theirs) for text, theirs in zip(texts, expected) if theirs]
        for name, folder in folders.items():
            marked = [f"[{language}]{theirs}".replace(" ", "[SPACE]") for _, theirs in kept]
            lines = comparison.run("parity_tokenize", "encode", folder / "vocab.json",
                                   input="".join(json.dumps(text) + "\n" for text in marked)).splitlines()
            ids = [references[name].encode(text, lang=language) for text, _ in kept]
            wrong = sum(json.loads(line) != theirs for line, theirs in zip(lines, ids, strict=True))
            comparison.say(f"{language}: ids of {name}", wrong == 0, f"{len(ids)} texts, {wrong} differ")


def read_pcm(data):
    """Samples of a stream: a wave file, or bare signed 16-bit ones."""
    if data[:4] == b"RIFF":
        at = data.index(b"data") + 8
        return torch.from_numpy(np.frombuffer(data[at:len(data) - (len(data) - at) % 2], "<i2") / 32768.0)
    return torch.from_numpy(np.frombuffer(data[:len(data) // 2 * 2], "<i2") / 32768.0)


def compare_stream(comparison, name, folder, files):
    """What users call: greedy against the reference, drawn codes streamed against whole."""
    size, last = made.SIZES[name], len(made.SIZES[name].texts) - 1
    language, words = size.texts[last]
    asked = ["synthesize", "--model", folder, "--language", language, "--text", words, "--voice",
             made.CLIPS / f"{size.voice}.flac", "--compat", "coqui", "--precision", "fp32", "--devices", "/CPU:0"]
    out = comparison.work / f"{name}-greedy.wav"
    comparison.run("tandem", *asked, "--greedy", "-o", out)
    expected = xtts_reference.read(files[f"text{last}"])[0]["wav"]
    comparison.loud(f"{name}, synthesize: text {last} against the reference",
                    torch.from_numpy(soundfile.read(out, dtype="float64")[0]), expected, WAVE)
    asked += ["--seed", 5]
    out = comparison.work / f"{name}-whole.wav"
    comparison.run("tandem", *asked, "-o", out)
    whole, rate = soundfile.read(out, dtype="float64")
    comparison.say(f"{name}, synthesize: sample rate", rate == 24000, rate)
    streamed = read_pcm(comparison.run("tandem", *asked, "--stream", binary=True))
    comparison.loud(f"{name}, synthesize: streamed sound against whole, {len(whole) / rate:.1f} s", streamed,
                    torch.from_numpy(whole), WAVE_STREAMED)


def compare_convert(comparison, name, folder, files):
    size, stop = made.SIZES[name], made.make_config(made.SIZES[name]).model_args.gpt_stop_audio_token
    expected, _ = xtts_reference.read(files["text0"])
    codes, out = without_stop(expected["codes"], stop), comparison.work / f"{name}-coqui"
    comparison.run("tandem", "convert", "--model", folder, "--to", "coqui", "--out", out)
    try:
        exported = xtts_reference.Reference(out)
    except Exception as error:  # whatever Coqui has against it is the finding
        comparison.say(f"{name}, exported: coqui-tts opens it", False, str(error).strip().replace("\n", " ")[:300])
        return
    language, words = size.texts[0]
    _, found = exported.speak(words, language, exported.voice(made.CLIPS / f"{size.voice}.flac"))
    compare_choices(comparison, f"{name}, exported to coqui: codes of coqui-tts", without_stop(found["codes"], stop),
                    codes, expected["margins"])
    comparison.loud(f"{name}, exported to coqui: wav of coqui-tts", found["wav"], expected["wav"], WAVE)
    compare_speakers(comparison, name, folder, exported)
    out = comparison.work / f"{name}-tandem"
    comparison.run("tandem", "convert", "--model", folder, "--to", "tandem", "--out", out)
    ours, _ = trace(comparison, name, out, 0, comparison.work / f"{name}-tandem.safetensors", limit=40)
    compare_choices(comparison, f"{name}, exported to tandem: codes of tandem", without_stop(ours["codes"], stop),
                    codes[:40], expected["margins"])


def compare_speakers(comparison, name, folder, exported):
    before = torch.load(folder / "speakers_xtts.pth", weights_only=True)
    after = exported.model.speaker_manager.speakers if exported.model.speaker_manager else {}
    equal = set(before) == set(after) and all(
        list(before[voice]) == list(after[voice])  # Coqui takes them by their order
        and all(torch.equal(before[voice][key], after[voice][key]) for key in before[voice]) for voice in before)
    comparison.say(f"{name}, exported to coqui: speakers", equal, f"{len(after)} of {len(before)}")


def guarded(comparison, what, function, *arguments):
    """A program that fails is one failed item; the other parts go on."""
    try:
        function(comparison, *arguments)
    except Failed as failure:
        comparison.say(what, False, str(failure))


def compare(comparison, names, parts):
    folders = made.folders(names)
    files = {name: xtts_reference.recorded(name, folder) for name, folder in folders.items()}
    for name, folder in folders.items():
        per_size = {"trace": (compare_trace, name, folder, files[name]),
                    "parts": (compare_parts, name, folder, files[name]),
                    "stream": (compare_stream, name, folder, files[name]),
                    "convert": (compare_convert, name, folder, files[name])}
        for part, (function, *arguments) in per_size.items():
            if part in parts:
                guarded(comparison, f"{name}, {part}", function, *arguments)
    if "text" in parts:
        from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer
        tokenizers = {name: VoiceBpeTokenizer(folder / "vocab.json") for name, folder in folders.items()}
        guarded(comparison, "text", compare_text, folders, tokenizers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--size", action="append", choices=list(made.SIZES))
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--keep", help="a folder for the traces and exported folders")
    parser.add_argument("--tandem", help="another program than BUILD/bin/tandem")
    parser.add_argument("--tool", help="another program than BUILD/bin/parity_xtts")
    parser.add_argument("--times", action="store_true", help="say how long each program runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(options.keep or folder)
        work.mkdir(parents=True, exist_ok=True)
        comparison = Comparison(options, work)
        compare(comparison, options.size or list(made.SIZES), options.only or PARTS)
    print(f"{comparison.passed} passed, {comparison.failed} failed, {time.monotonic() - started:.0f} s")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())

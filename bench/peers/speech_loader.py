#!/usr/bin/env python3
"""The loader everybody uses, as a peer of `tandem bench data`: a torch DataLoader whose workers read with soundfile,
resample and take mels with torchaudio and encode with HF tokenizers. Prints one JSON line.

  bench/peers/speech_loader.py --data DIR --tokenizer vocab.json --rate 22050 --workers 2 --seconds 20

DIR is in LJSpeech layout. What makes it a fair opponent: workers stay alive and work ahead (prefetch_factor 4), one
thread each, filters and mel banks are made once a worker, batches hold clips of like length, a whole batch's texts are
encoded in one call, nothing is copied that is not needed, gradients are off. Epochs follow each other in one iterator,
so no worker idles between them. Without --tokenizer a BPE of 500 tokens is trained on DIR's texts, outside the timing.
Exit codes: 2 usage, 4 files, 1 otherwise.
"""
import argparse
import functools
import json
import math
import multiprocessing
import os
import pathlib
import random
import sys
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import soundfile
    import tokenizers
    import torch
    import torchaudio
except ImportError as missing:
    print(f"speech_loader: error: {missing}. It needs torch, torchaudio, soundfile and tokenizers.", file=sys.stderr)
    sys.exit(1)

MELS = {
    "default": dict(n_fft=1024, hop_length=256, n_mels=80, power=1.0, mel_scale="slaney", norm="slaney"),
    "xtts_dvae": dict(n_fft=1024, hop_length=256, n_mels=80, power=2.0, mel_scale="htk", norm="slaney", f_max=8000.0),
}
FLOOR = 1e-5
SORTED_BATCHES = 50  # clips are sorted by length within so many batches of shuffled clips


class Failure(Exception):
    """A sentence for the user."""


def read_folder(folder):
    """(path, text, seconds) of every clip; headers only."""
    table = folder / "metadata.csv"
    if not table.is_file():
        raise Failure(f"`{folder}` is no LJSpeech folder: it has no metadata.csv.")
    clips = []
    for number, line in enumerate(table.read_text(encoding="utf-8-sig").splitlines(), 1):
        fields = line.split("|")
        paths = [folder / f"wavs/{fields[0]}{ending}" for ending in (".wav", ".flac")]
        path = next((path for path in paths if path.is_file()), None)
        if len(fields) < 2 or path is None:
            raise Failure(f"{table}:{number}: expected `id|text` and wavs/id.wav or .flac, found `{line[:80]}`.")
        clips.append((str(path), fields[-1], soundfile.info(str(path)).duration))
    if not clips:
        raise Failure(f"`{table}` is empty.")
    return clips


def read_clip(path):
    audio, rate = soundfile.read(path, dtype="float32")
    return torch.from_numpy(audio if audio.ndim == 1 else audio.mean(axis=1)), rate


@functools.lru_cache(maxsize=None)
def resampler(source, target):
    return torchaudio.transforms.Resample(source, target)


@functools.lru_cache(maxsize=None)
def mel_bank(kind, rate):
    return torchaudio.transforms.MelSpectrogram(sample_rate=rate, **MELS[kind])


def log_mel(audio, kind, rate):
    return mel_bank(kind, rate)(audio).clamp_(min=FLOOR).log_()


def spell(text, tokenizer):
    """XTTS vocabularies want lower case, a language mark and spaces as a token."""
    text = text.lower()
    return text if tokenizer.token_to_id("[SPACE]") is None else "[en]" + text.replace(" ", "[SPACE]")


class Clips(torch.utils.data.Dataset):
    """Clips prepared where they are asked for: mel [mels, frames] and text."""

    def __init__(self, clips, rate, mel):
        self.paths, self.texts, _ = zip(*clips)
        self.rate, self.mel = rate, mel

    def __len__(self):
        return len(self.paths)

    @torch.inference_mode()
    def __getitem__(self, index):
        audio, rate = read_clip(self.paths[index])
        if rate != self.rate:
            audio = resampler(rate, self.rate)(audio)
        return log_mel(audio, self.mel, self.rate), self.texts[index]


class Collate:
    """Pads to the longest clip and text of the batch: mel [B, mels, frames], tokens [B, T], both lengths [B]."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    @torch.inference_mode()
    def __call__(self, items):
        texts = [spell(text, self.tokenizer) for _, text in items]
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        frames = torch.tensor([mel.shape[-1] for mel, _ in items])
        lengths = torch.tensor([len(row) for row in ids])
        mels = torch.full((len(items), items[0][0].shape[0], int(frames.max())), math.log(FLOOR))
        tokens = torch.zeros((len(items), int(lengths.max())), dtype=torch.long)
        for place, (mel, _) in enumerate(items):
            mels[place, :, : mel.shape[-1]] = mel
            tokens[place, : len(ids[place])] = torch.tensor(ids[place])
        return {"mel": mels, "frames": frames, "tokens": tokens, "lengths": lengths}


class LengthBuckets(torch.utils.data.Sampler):
    """Batches of like length in a new order each epoch, for ever; an epoch's last batch may be smaller."""

    def __init__(self, seconds, batch_size, seed=0):
        self.seconds, self.batch_size, self.seed = seconds, batch_size, seed
        self.batches_an_epoch = math.ceil(len(seconds) / batch_size)

    def epoch(self, number):
        rng = random.Random(self.seed * 1_000_003 + number)
        order = rng.sample(range(len(self.seconds)), len(self.seconds))
        window = self.batch_size * SORTED_BATCHES
        batches = []
        for start in range(0, len(order), window):
            alike = sorted(order[start : start + window], key=self.seconds.__getitem__)
            batches += [alike[i : i + self.batch_size] for i in range(0, len(alike), self.batch_size)]
        rng.shuffle(batches)
        return batches

    def __iter__(self):
        number = 0
        while True:
            yield from self.epoch(number)
            number += 1


def start_worker(_):
    torch.set_num_threads(1)


def cpu_seconds():
    """Of this process and its workers so far; the figure that a busy machine disturbs least."""
    ticks = 0
    for process in (os.getpid(), *(child.pid for child in multiprocessing.active_children())):
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # user and system
    return ticks / os.sysconf("SC_CLK_TCK")


def race(clips, tokenizer, options):
    """Clips per second once warm: the first epoch fills caches and is not counted."""
    sampler = LengthBuckets([seconds for _, _, seconds in clips], options.batch_size)
    ahead = dict(persistent_workers=True, prefetch_factor=4) if options.workers else {}
    loader = torch.utils.data.DataLoader(
        Clips(clips, options.rate, options.mel), batch_sampler=sampler, collate_fn=Collate(tokenizer),
        num_workers=options.workers, worker_init_fn=start_worker, pin_memory=False, **ahead)
    batches = iter(loader)
    for _ in range(sampler.batches_an_epoch):
        next(batches)
    wanted = options.epochs * sampler.batches_an_epoch if options.epochs else math.inf
    count = taken = frames = 0
    start, cpu_start = time.perf_counter(), cpu_seconds()
    while True:
        batch = next(batches)
        count, taken, frames = count + 1, taken + len(batch["frames"]), frames + int(batch["frames"].sum())
        seconds = time.perf_counter() - start
        if count >= wanted or (not options.epochs and seconds >= options.seconds):
            break
    cpu = max(cpu_seconds() - cpu_start, 0.01)
    hop = MELS[options.mel]["hop_length"]
    return {"warm_up": f"first epoch ({sampler.batches_an_epoch} batches)", "batches": count, "clips": taken,
            "seconds": round(seconds, 3), "clips_per_second": round(taken / seconds, 2),
            "cpu_seconds": round(cpu, 2), "clips_per_cpu_second": round(taken / cpu, 2),
            "times_real_time": round(frames * hop / options.rate / seconds, 1)}


def rate_of(work, items):
    """Items a second through one stage in this process; a first pass over some warms it up."""
    for item in items[:8]:
        work(item)
    start = time.perf_counter()
    for item in items:
        work(item)
    return round(len(items) / (time.perf_counter() - start), 1)


@torch.inference_mode()
def stage_rates(clips, tokenizer, options):
    """Each stage alone, one process, one thread, on the same evenly spread clips."""
    some = clips[:: max(1, len(clips) // options.stage_clips)][: options.stage_clips]
    read = [read_clip(path) for path, _, _ in some]
    apart = [(audio, rate) for audio, rate in read if rate != options.rate]
    ready = [resampler(rate, options.rate)(audio) if rate != options.rate else audio for audio, rate in read]
    return {
        "decode": rate_of(read_clip, [path for path, _, _ in some]),
        "resample": rate_of(lambda item: resampler(item[1], options.rate)(item[0]), apart) if apart else None,
        "mel": rate_of(lambda audio: log_mel(audio, options.mel, options.rate), ready),
        "tokenize": rate_of(lambda text: tokenizer.encode(spell(text, tokenizer)).ids, [text for _, text, _ in some]),
    }


def open_tokenizer(path, clips):
    if path:
        try:
            return tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exceptions
            raise Failure(f"cannot read the tokenizer `{path}`: {error}") from error
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    marks = ["[STOP]", "[UNK]", "[SPACE]", "[en]"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=500, special_tokens=marks, show_progress=False)
    tokenizer.train_from_iterator([text.lower() for _, text, _ in clips], trainer)
    return tokenizer


def parse():
    parser = argparse.ArgumentParser(description="Race the usual PyTorch speech loader; print one JSON line.")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder in LJSpeech layout")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="HF tokenizers JSON")
    parser.add_argument("--rate", type=int, default=22050)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch-size", type=int, default=16)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=20.0)
    length.add_argument("--epochs", type=int)
    parser.add_argument("--mel", choices=MELS, default="default")
    parser.add_argument("--stage-clips", type=int, default=200, help="clips for the stages' own figures; 0: none")
    options = parser.parse_args()
    if (min(options.rate, options.batch_size) < 1 or min(options.workers, options.stage_clips) < 0
            or options.seconds <= 0 or (options.epochs is not None and options.epochs < 1)):
        parser.error("rate, batch size, seconds and epochs must be positive, workers and stage clips not negative")
    return options


def main():
    options = parse()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    try:
        clips = read_folder(options.data)
        tokenizer = open_tokenizer(options.tokenizer, clips)
        stages = stage_rates(clips, tokenizer, options) if options.stage_clips else None
        result = race(clips, tokenizer, options)
    except (Failure, OSError, soundfile.LibsndfileError) as failure:
        print(f"speech_loader: error: {failure}", file=sys.stderr)
        return 4
    print(json.dumps({
        "peer": "torch DataLoader + soundfile + torchaudio + tokenizers",
        "versions": {module.__name__: module.__version__ for module in (torch, torchaudio, soundfile, tokenizers)},
        "data": str(options.data), "corpus_clips": len(clips), "corpus_seconds": round(sum(c[2] for c in clips), 1),
        "rate": options.rate, "mel": options.mel, "workers": options.workers, "batch_size": options.batch_size,
        "cores": len(os.sched_getaffinity(0)), "load_at_start": round(load, 2), **result,
        "stage_clips_per_second": stages}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

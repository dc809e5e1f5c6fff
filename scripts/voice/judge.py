#!/usr/bin/env python3
"""Judges speech from outside: Whisper base writes down what it hears (CER, WER), and an ECAPA encoder says how much a
clip sounds like the speaker. On the CPU. Run it with the Python of scripts/voice/judges.sh.

    judge.py --language en --speaker CORPUS/train --out TABLE.md NAME=FOLDER...

NAME=FOLDER is a set of clips to judge: a folder in LJSpeech layout, or one that `tandem synthesize` wrote from many
texts (manifest.jsonl). --speaker is the voice it should be; --strangers, a folder of another one, gives the lower end
of the scale of similarity.
Writes a markdown table, and beside it TABLE.tsv with every clip: file, what it should say, what was heard, CER,
similarity.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import statistics
import sys
import time
import unicodedata

import numpy as np
import soundfile
import torch
import torchaudio

WEIGHTS = pathlib.Path(sys.prefix) / "weights"
SPEAKER_CLIPS = 20  # recordings that make the speaker's embedding


def find_sound(folder: pathlib.Path, name: str) -> pathlib.Path:
    for ending in ("", ".wav", ".flac", ".opus"):
        if (folder / (name + ending)).is_file():
            return folder / (name + ending)
    raise SystemExit(f"judge: error: there is no sound `{name}` in `{folder}`.")


def read_set(folder: pathlib.Path, most: int) -> list[tuple[pathlib.Path, str]]:
    """Sounds with their texts, at most `most` of them, evenly spread."""
    if (folder / "manifest.jsonl").exists():
        lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines() if line.strip()]
        latest = {line["file"]: line for line in lines if "file" in line}
        clips = [(folder / name, line["text"]) for name, line in latest.items() if (folder / name).is_file()]
    else:
        rows = [line.split("|") for line in (folder / "metadata.csv").read_text(encoding="utf-8").splitlines()]
        clips = [(find_sound(folder / "wavs", row[0]), row[-1]) for row in rows]
    if not clips:
        raise SystemExit(f"judge: error: `{folder}` has no clips.")
    return [clips[i * len(clips) // min(most, len(clips))] for i in range(min(most, len(clips)))]


def load(path: pathlib.Path, rate: int = 16000) -> torch.Tensor:
    samples, own = soundfile.read(path, dtype="float32", always_2d=True)
    return torchaudio.functional.resample(torch.from_numpy(samples.mean(1)), own, rate)


def plain(text: str, language: str) -> str:
    """Lower case, letters and single spaces only; numbers in words, as Whisper likes to write digits."""
    from num2words import num2words
    text = re.sub(r"\d+", lambda number: f" {num2words(int(number[0]), lang=language)} ", text.lower())
    text = unicodedata.normalize("NFC", text.replace("ё", "е"))
    text = re.sub(r"['’]", "", text)
    return " ".join("".join(c if c.isalpha() or c.isspace() else " " for c in text).split())


def edits(wanted, heard) -> int:
    row = list(range(len(heard) + 1))
    for i, a in enumerate(wanted, 1):
        corner, row[0] = row[0], i
        for j, b in enumerate(heard, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (a != b))
    return row[-1]


class Speaker:
    """Embeddings of spkrec-ecapa-voxceleb."""

    def __init__(self) -> None:
        from speechbrain.lobes.features import Fbank
        from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
        from speechbrain.processing.features import InputNormalization
        self.features, self.norm = Fbank(n_mels=80), InputNormalization(norm_type="sentence", std_norm=False)
        self.model = ECAPA_TDNN(80, channels=[1024] * 4 + [3072], kernel_sizes=[5, 3, 3, 3, 1],
                                dilations=[1, 2, 3, 4, 1], attention_channels=128, lin_neurons=192).eval()
        self.model.load_state_dict(torch.load(WEIGHTS / "ecapa.ckpt", map_location="cpu", weights_only=True))

    @torch.no_grad()
    def __call__(self, wave: torch.Tensor) -> np.ndarray:
        features = self.norm(self.features(wave[None]), torch.ones(1))
        embedding = self.model(features).flatten().numpy()
        return embedding / np.linalg.norm(embedding)


def bootstrap(values: list[tuple[int, int]]) -> tuple[float, float]:
    """95 % interval of sum(a) / sum(b) over clips."""
    random, pairs = np.random.default_rng(0), np.array(values, float)
    drawn = pairs[random.integers(0, len(pairs), (2000, len(pairs)))].sum(1)
    return tuple(np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--language", default="en")
    parser.add_argument("--speaker", type=pathlib.Path, required=True)
    parser.add_argument("--strangers", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--most", type=int, default=40, help="clips judged of each set (default 40)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    from faster_whisper import WhisperModel
    whisper = WhisperModel(str(WEIGHTS / "whisper"), device="cpu", compute_type="float32", cpu_threads=options.threads,
                           local_files_only=True)
    speaker = Speaker()
    reference = [speaker(load(path)) for path, _ in read_set(options.speaker, SPEAKER_CLIPS)]
    centre = np.mean(reference, axis=0)
    centre /= np.linalg.norm(centre)

    def transcribe(wave: torch.Tensor) -> str:
        segments, _ = whisper.transcribe(wave.numpy(), language=options.language, beam_size=5, temperature=0.0,
                                         condition_on_previous_text=False, without_timestamps=True)
        return " ".join(segment.text.strip() for segment in segments)

    clips, lines = [], []
    header = ("| set | clips | seconds | CER | 95 % | WER | same voice (ECAPA) | lowest |\n"
              "|---|---|---|---|---|---|---|---|")
    for name, _, folder in (word.rpartition("=") for word in options.sets):
        started, letters, words, similar, seconds = time.monotonic(), [], [], [], 0.0
        for path, text in read_set(pathlib.Path(folder), options.most):
            wave = load(path)
            seconds += len(wave) / 16000
            # The encoder needs some frames; what is shorter is judged with silence behind it.
            wave = torch.nn.functional.pad(wave, (0, max(0, 16000 - len(wave))))
            heard = transcribe(wave)
            said, understood = plain(text, options.language), plain(heard, options.language)
            letters.append((edits(said, understood), len(said)))
            words.append((edits(said.split(), understood.split()), len(said.split())))
            similar.append(float(speaker(wave) @ centre))
            clips.append((name, path, text, heard, f"{letters[-1][0] / letters[-1][1]:.4f}",
                          f"{similar[-1]:.3f}"))
        share = [sum(a for a, _ in pairs) / sum(b for _, b in pairs) for pairs in (letters, words)]
        low, high = bootstrap(letters)
        lines.append(f"| {name} | {len(letters)} | {seconds:.0f} | {share[0]:.2%} | {low:.2%} to {high:.2%} | "
                     f"{share[1]:.2%} | {statistics.mean(similar):.3f} | {min(similar):.3f} |")
        print(f"judge: {name}: {len(letters)} clips in {time.monotonic() - started:.0f} s", file=sys.stderr)
    if options.strangers:
        other = [float(speaker(load(path)) @ centre) for path, _ in read_set(options.strangers, SPEAKER_CLIPS)]
        lines.append(f"| another speaker | {len(other)} | | | | | {statistics.mean(other):.3f} | {min(other):.3f} |")
    table = "\n".join([header, *lines])
    note = (f"\nWhisper base (faster-whisper, beam 5) and ECAPA against the mean of "
            f"{len(reference)} clips of `{options.speaker}`, on the CPU.\n")
    options.out.write_text(table + "\n" + note)
    with options.out.with_suffix(".tsv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["set", "file", "text", "heard", "cer", "similarity"])
        writer.writerows(clips)
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

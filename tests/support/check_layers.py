#!/usr/bin/env python3
"""Layers include only what stands above them. Run: check_layers.py REPOSITORY"""
import pathlib
import re
import sys

# Top to bottom; layers on one line stand side by side and do not see each other.
LAYERS = [["util"], ["config"], ["device"], ["audio", "text"], ["data"], ["nn"], ["checkpoint"], ["models"],
          ["train", "generate"], ["observe"], ["cli"]]
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}


def main(root: pathlib.Path) -> int:
    wrong = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
            continue
        parts = path.relative_to(root / "src").parts
        if len(parts) == 1:
            continue
        layer = parts[0]
        if layer not in RANK:
            wrong.append(f"{path}: folder `{layer}` is in no layer; add it to the list and to CONTRIBUTING.md")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r'#include "([a-z_]+)/', line)
            if not include or include[1] == "tandem":
                continue
            other = include[1]
            if other not in RANK or (other != layer and RANK[other] >= RANK[layer]):
                wrong.append(f"{path}:{number}: `{layer}` may not include `{other}`")
            if "<torch/torch.h>" in line:
                wrong.append(f"{path}:{number}: torch/torch.h costs 15 s a file")
    print("\n".join(wrong) or "layers: fine")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

"""What the comparisons with judges of their own environment share: a line a check, and that environment."""
import os
import pathlib
import subprocess
import sys


class Checks:
    def __init__(self):
        self.failed = 0

    def __call__(self, what: str, holds: bool, found: object = "") -> None:
        self.failed += not holds
        print(f"  {'ok  ' if holds else 'FAIL'}  {what}" + ("" if holds else f": {found}"))


def environment(name: str, packages: list[str]) -> pathlib.Path:
    """Python of an environment with the packages, made under ${XDG_CACHE_HOME:-~/.cache}/tandem when it is not there."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tandem"
    place = cache / name
    if not (place / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        subprocess.run([place / "bin/pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
        (place / "complete").touch()
    return place / "bin/python"

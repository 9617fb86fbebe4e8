"""Makes a virtual environment and installs into it, with a line that says what it is doing.

    python3 .ci/install.py VENV PIP-ARGUMENTS…

Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SAID = {
    "Collecting": "looking up", "Downloading": "downloading", "Using cached": "taking from the cache",
    "Obtaining": "reading", "Building": "building", "Installing collected packages": "installing",
}  # fmt: skip
"""How pip begins a line → what that means."""


class Line:
    """One line that is drawn anew; in a pipe, a line for each thing that takes long."""

    def __init__(self) -> None:
        self.began, self.live = time.monotonic(), sys.stdout.isatty()

    def show(self, text: str, *, final: bool = False) -> None:
        took = f"[{time.monotonic() - self.began:4.0f} s] "
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{(took + text)[:width]}", end="\n" if final else "", flush=True)
        elif final or text.startswith(("downloading", "installing", "building")):
            print(took + text, flush=True)


def meaning(said: str) -> str:
    """A line of pip in plain words; empty when it is of no interest."""
    for start, words in SAID.items():
        if said.strip().startswith(start):
            rest = said.strip()[len(start) :].lstrip(": ").split(" (from ")[0]
            return (
                words
                if start.startswith("Installing")
                else f"{words} {re.sub(r'-(cp|py)[23].*whl', '', rest)}"
            )
    return ""


def install(pip: Path, arguments: list[str], line: Line) -> int:
    command = [str(pip), "install", "--no-color", "--disable-pip-version-check", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        assert child.stdout is not None
        said = []
        for text in child.stdout:
            said.append(text)
            if words := meaning(text):
                line.show(words)
    if child.returncode:
        print("\n" + "".join(said[-15:]), file=sys.stderr)
    return child.returncode


def main() -> int:
    venv, *arguments = sys.argv[1:]
    line = Line()
    if not (Path(venv) / "bin" / "pip").exists():
        line.show(f"making a virtual environment in {venv}")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    line.show("asking the package index (the first time takes a few minutes)")
    code = install(Path(venv) / "bin" / "pip", arguments, line)
    line.show("installed" if code == 0 else "pip failed", final=True)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(130)

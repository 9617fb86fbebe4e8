"""Where a trial may write: into an overlay that vanishes, into a copy of the folder, or, if the user says so,
where the script always writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from monitor.model.errors import UserError
from monitor.model.units import size

Mode = Literal["auto", "overlay", "copy", "none"]
MODES: tuple[Mode, ...] = ("auto", "overlay", "copy", "none")
MOST_BYTES, MOST_FILES = 1 << 29, 20_000
"""A choice: a folder larger than this is not copied for every trial."""
_NOT_COPIED = {".git", ".venv", "venv", "node_modules", "__pycache__"}
"""Nothing a training writes to. What is run from them is run from where it is."""
_ENTER = Path(__file__).with_name("enter.py")


class Isolation:
    """Nothing is kept apart."""

    sentence = "what the script writes is written for real (--isolate none)"

    def place(self, words: list[str], scratch: Path) -> tuple[list[str], str]:
        """The command as it is to be started, and the folder to start it in."""
        return words, os.getcwd()


class Overlay(Isolation):
    sentence = "what the script writes goes to an overlay in memory and is gone afterwards"

    def __init__(self, keep: list[str]) -> None:
        self._keep = keep

    def place(self, words: list[str], scratch: Path) -> tuple[list[str], str]:
        point = scratch / "overlay"
        point.mkdir()
        config = {"mount_on": str(point), "keep": [*self._keep, str(scratch)], "cwd": os.getcwd()}
        return [sys.executable, "-I", str(_ENTER), json.dumps(config), *words], os.getcwd()

    def problem(self, scratch: Path) -> str | None:
        """Why there is none on this machine."""
        words, cwd = self.place(["sh", "-c", ": > .gpumon-try"], scratch)
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return None if done.returncode == 0 else done.stderr.strip().rpartition("\n")[2]


class Copy(Isolation):
    sentence = (
        "the script runs in a copy of this folder; what it writes elsewhere, by an absolute path, "
        "is written for real"
    )

    def place(self, words: list[str], scratch: Path) -> tuple[list[str], str]:
        here, copy = Path.cwd(), scratch / "copy"
        shutil.copytree(here, copy, symlinks=True, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        return [words[0], *(_moved(word, here, copy) for word in words[1:])], str(copy)


def _moved(word: str, here: Path, copy: Path) -> str:
    """A word of the command that names something in the folder by its absolute path."""
    option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    if value == str(here) or value.startswith(f"{here}{os.sep}"):
        return f"{option}{equals}{copy}{value[len(str(here)) :]}"
    return word


def choose(mode: Mode, keep: list[str], scratch: Path) -> Isolation:
    """The best there is; nothing of the user's is written to unless he said so."""
    if mode == "none":
        return Isolation()
    overlay = Overlay(keep)
    why_no_overlay = overlay.problem(scratch) if mode in ("auto", "overlay") else ""
    if why_no_overlay is None:
        return overlay
    why_no_copy = _too_large(Path.cwd()) if mode in ("auto", "copy") else ""
    if mode == "overlay" or why_no_copy:
        raise UserError(
            "; ".join(part for part in (why_no_overlay, why_no_copy) if part)
            + ": trials would write over the script's own files",
            hint="start it in the folder of the script alone, or accept that with --isolate none",
        )
    return Copy()


def _too_large(folder: Path) -> str:
    """Why a folder is not copied; empty when it may be."""
    total = 0
    for count, length in enumerate(_files(folder), 1):
        total += length
        if total > MOST_BYTES or count > MOST_FILES:
            return f"{folder} has more than {size(MOST_BYTES)} or {MOST_FILES} files, too much to copy"
    return ""


def _files(folder: Path) -> Iterator[int]:
    for where, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in _NOT_COPIED]
        for name in names:
            yield os.lstat(os.path.join(where, name)).st_size

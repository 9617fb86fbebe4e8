"""Applies the change of a finding to a copy of a script, and trains with both for a few steps."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE

HEAD = re.compile(r"^@@ (.+):(\d+) @@$")
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Hunk:
    """Lines of one file to be replaced."""

    file: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def hunks(change: str) -> list[Hunk]:
    """The hunks of a change; anything that is not a hunk is an error."""
    found: list[Hunk] = []
    for text in change.splitlines():
        head = HEAD.match(text)
        if head:
            found.append(Hunk(head[1], int(head[2]), (), ()))
            continue
        last = found.pop()
        assert text[:2] in ("- ", "+ "), text
        if text[0] == "-":
            found.append(Hunk(last.file, last.line, (*last.old, text[2:]), last.new))
        else:
            found.append(Hunk(last.file, last.line, last.old, (*last.new, text[2:])))
    return found


def is_diff(change: str) -> bool:
    return change.startswith("@@ ")


def apply(source: str, change: str) -> str:
    """The source with all hunks applied, last first, so that line numbers stay valid."""
    lines = source.splitlines()
    for hunk in sorted(hunks(change), key=lambda one: -one.line):
        at = hunk.line - 1
        indent = " " * (len(lines[at]) - len(lines[at].lstrip())) if hunk.old else ""
        there = lines[at : at + len(hunk.old)]
        assert [one.rstrip() for one in there] == [(indent + one).rstrip() for one in hunk.old], (there, hunk)
        lines[at : at + len(hunk.old)] = [indent + one for one in hunk.new]
    changed = "\n".join(lines) + "\n"
    ast.parse(changed)
    return changed


LOSSES = """\
import atexit, json, os, sys
import torch
torch.manual_seed(0)
import random
random.seed(0)
try:
    import numpy
    numpy.random.seed(0)
except ImportError:
    pass
_losses, _pid = [], os.getpid()
_backward = torch.Tensor.backward
def _write():
    if os.getpid() == _pid and _losses:
        with open(os.environ["LOSSES"], "w") as out:
            json.dump(_losses, out)
def _watched(self, *args, **kwargs):
    _losses.append(float(self.detach()))
    if len(_losses) > int(os.environ["STEPS"]):
        sys.stdout.flush()
        _write()
        os._exit(0)
    return _backward(self, *args, **kwargs)
torch.Tensor.backward = _watched
atexit.register(_write)
"""
"""Put before a script: fixes the random numbers and records the losses of its first steps, or of all of a
shorter script."""


def losses(script: Path, folder: Path, steps: int = 40) -> list[float]:
    """The losses of the first steps of a script."""
    code = (
        LOSSES
        + f"import runpy; sys.argv = sys.argv[1:]; runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    target = folder / f"{script.stem}.json"
    environment = {**os.environ, "LOSSES": str(target), "STEPS": str(steps), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(script)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert target.exists() and done.returncode == 0, done.stderr[-2000:]
    found: list[float] = json.loads(target.read_text())
    return found


def report(script: Path, folder: Path) -> dict[str, Any]:
    """What `gpumon run` says about a script."""
    (folder / "rings").mkdir(exist_ok=True)
    target = folder / f"{script.stem}.report.json"
    places = {"GPUMON_DIR": str(folder / "rings"), "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "-m", "monitor.cli.main", "run", "--no-summary", "--json", str(target), "--"]
    subprocess.run(
        [*command, sys.executable, str(script)],
        env={**os.environ, **places, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        timeout=PATIENCE,
    )
    found: dict[str, Any] = json.loads(target.read_text())
    return found

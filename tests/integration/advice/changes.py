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

from tests import warm
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
import json, os, runpy, sys, traceback
import torch
torch.manual_seed(0)
import random
random.seed(0)
try:
    import numpy
    numpy.random.seed(0)
except ImportError:
    pass
steps, *scripts = sys.argv[1:]
_losses = []
_backward = torch.Tensor.backward
def _watched(self, *args, **kwargs):
    _losses.append(float(self.detach()))
    if len(_losses) > int(steps):
        _end()
    return _backward(self, *args, **kwargs)
def _end():
    sys.stdout.flush()
    with open(sys.argv[0] + ".losses", "w") as out:
        json.dump(_losses, out)
    os._exit(0)
torch.Tensor.backward = _watched
for script in scripts:
    child = os.fork()
    if child == 0:
        try:
            sys.argv = [script]
            runpy.run_path(script, run_name="__main__")
            _end()
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    if os.waitpid(child, 0)[1]:
        sys.exit(script + " failed")
"""
"""Runs scripts one after the other, each in a process that has torch and the same random numbers, and records
the losses of their first steps, or of all of a shorter script."""


def losses(folder: Path, *scripts: Path, steps: int = 40) -> list[list[float]]:
    """The losses of the first steps of each script."""
    done = subprocess.run(
        [warm.python(), "-c", LOSSES, str(steps), *map(str, scripts)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(Path(f"{script}.losses").read_text()) for script in scripts]


def without_and_with(script: Path, change: str, folder: Path) -> tuple[list[float], list[float]]:
    """The losses of a script as it is, and with the change."""
    source = script.read_text()
    own, changed = folder / f"own_{script.name}", folder / f"changed_{script.name}"
    own.write_text(source)
    changed.write_text(apply(source, change))
    before, after = losses(folder, own, changed)
    return before, after


def report(script: Path, folder: Path, most_steps: int | None = None) -> dict[str, Any]:
    """What `gpumon run` says about a script, or about its first steps."""
    (folder / "rings").mkdir(exist_ok=True)
    target = folder / f"{script.stem}.report.json"
    own = {"GPUMON_DIR": str(folder / "rings"), "XDG_STATE_HOME": str(folder / "state")}
    if most_steps:
        own["GPUMON_MAX_STEPS"] = str(most_steps)
    command = [sys.executable, "-m", "monitor.cli.main", "run", "--no-summary", "--json", str(target), "--"]
    subprocess.run(
        [*command, warm.python(), str(script)],
        env={**os.environ, **own, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        timeout=PATIENCE,
    )
    found: dict[str, Any] = json.loads(target.read_text())
    return found

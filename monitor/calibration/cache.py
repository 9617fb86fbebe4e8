"""One file per kind of machine, in the state directory; an unreadable one is treated as missing."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from monitor.calibration.prices import Calibration, is_sane
from monitor.model.paths import state_directory

FOLDER = "calibration"


def machine_kind(proc: Path = Path("/proc")) -> str:
    """What prices depend on: the number and model of the cores."""
    return f"{os.cpu_count() or 1} × {_model(proc)}"


def _model(proc: Path) -> str:
    try:
        lines = (proc / "cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown CPU"
    named = (line.partition(":")[2] for line in lines if line.startswith(("model name", "Hardware", "Model")))
    return next((" ".join(name.split()) for name in named), "unknown CPU")


def path_of(machine: str, folder: Path | None = None) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    return (folder or state_directory() / FOLDER) / f"{name}.json"


def load(machine: str | None = None, folder: Path | None = None) -> Calibration | None:
    """The prices for this kind of machine; None if there are no usable ones."""
    machine = machine or machine_kind()
    try:
        found = msgspec.json.decode(path_of(machine, folder).read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.machine == machine and is_sane(found.prices) else None


def save(calibration: Calibration, folder: Path | None = None) -> Path:
    """Written completely or not at all. Raises `OSError`."""
    path = path_of(calibration.machine, folder)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=2))
    fresh.replace(path)
    return path

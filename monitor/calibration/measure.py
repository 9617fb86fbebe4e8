"""Runs `sdk/calibrate.py` in its own process, with the interpreter used for training."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec

import monitor
from monitor.calibration.cache import machine_kind
from monitor.calibration.prices import Calibration, Prices, is_sane

DEADLINE_SECONDS = 120.0
"""Most of it goes into starting torch."""
BUSY = 0.5
"""Share of the cores others may use: beyond this, we would be measuring their work."""


class NotMeasured(Exception):
    """Why there are no prices, as a clause."""


def busy_share() -> float:
    """Processes per core that wanted to run over the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


def measure(python: str | None = None) -> Calibration:
    """The prices of this machine. Raises `NotMeasured`."""
    if busy_share() > BUSY:
        raise NotMeasured("the machine is busy: other processes would distort the measurement")
    prices = _ask(python or sys.executable)
    if not is_sane(prices):
        raise NotMeasured(f"the figures make no sense: {prices}")
    return Calibration(machine_kind(), time.time(), prices)


def _ask(python: str) -> Prices:
    script = Path(monitor.__file__).parent.parent / "sdk" / "calibrate.py"
    try:
        done = subprocess.run(
            [python, str(script)], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotMeasured(f"{python} did not answer: {error}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise NotMeasured(f"{python}: {said[-1]}")
    try:
        return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=Prices)
    except (msgspec.MsgspecError, IndexError) as error:
        raise NotMeasured(f"{python} gave an unexpected answer: {error}") from error

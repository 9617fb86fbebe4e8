"""What a script really gains: wall clock of the bare script, naive and fixed, with gpumon nowhere near it."""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from pathlib import Path

from tests.benchmarks.diagnosis.catalog import Case

CLOCK = Path(__file__).parent / "clock"
ROOT = Path(__file__).parents[3]
DEADLINE = 180.0
WARM_UP = 10
"""Steps not counted, at most a tenth of all: the first ones load libraries and fill caches."""


def step_seconds(case: Case, *extra: str) -> float | None:
    """Mean seconds from the end of one optimizer step to the end of the next (of one backward pass, if the
    optimizer is not one of torch's); None with too few of them."""
    with tempfile.TemporaryDirectory(prefix="gpumon-truth-") as folder:
        path = os.pathsep.join([str(CLOCK), str(ROOT)])
        environment = {**os.environ, "STAMPS": folder, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        command = [*case.command, *extra]
        try:
            subprocess.run(command, env=environment, timeout=DEADLINE, capture_output=True, cwd=folder)
        except subprocess.TimeoutExpired:
            return None
        means = [_mean(_longest(folder, kind), whole=case.whole) for kind in ("stamps", "passes")]
    return next(filter(None, means), None)


def _longest(folder: str, kind: str) -> tuple[float, ...]:
    """Of the process that has most."""
    return max((_read(one) for one in Path(folder).glob(f"*.{kind}")), key=len, default=())


def _read(path: Path) -> tuple[float, ...]:
    raw = path.read_bytes()
    return tuple(one for (one,) in struct.iter_unpack("d", raw))


def _mean(stamps: tuple[float, ...], *, whole: bool) -> float | None:
    """Over all steps but the first ones; where compilation is the cause, over all, from the first call."""
    skipped = 0 if whole else max(1, min(WARM_UP, len(stamps) // 10))
    counted = stamps[skipped:]
    return (counted[-1] - counted[0]) / (len(counted) - 1) if len(counted) > 1 else None


def realised(case: Case, naive: float | None, fixed: float | None) -> float | None:
    """How many times as fast a sample goes through the fixed script."""
    if not naive or not fixed:
        return None
    before, after = case.batches
    return (naive / before) / (fixed / after)

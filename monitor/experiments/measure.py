"""What a trial's ring says: how long its steps took, warm-up left out."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from monitor.model.steps import Columns
from sdk import ring

WARM_STEPS = 10
"""As in the trial itself: no later step is called warm-up, so every arm leaves out as many."""
LEAST_STEPS = 5
_NOT_STEADY = ring.F_WARMUP | ring.F_SAMPLED | ring.F_COMPILED


class Measured(msgspec.Struct, frozen=True):
    """The steady part of a trial."""

    steps: int
    seconds: float
    samples: int

    @property
    def period(self) -> float:
        """Seconds a step, everything in the loop included."""
        return self.seconds / self.steps

    def faster_than(self, period: float) -> float:
        """As a ratio of the times of a step."""
        return period / self.period

    def cost(self, by_sample: bool) -> float:
        """Seconds a sample, or a step."""
        return self.seconds / self.samples if by_sample else self.period


def measure(folder: Path, run_id: str) -> Measured | None:
    """Of the first rank's ring with the most steps; None when there are too few of them."""
    found = _longest(folder, run_id)
    if found is None:
        return None
    found.keep([at >= WARM_STEPS and not flags & _NOT_STEADY for at, flags in enumerate(found.flags)])
    if len(found) < LEAST_STEPS:
        return None
    return Measured(len(found), sum(found.raw) / 1e9, sum(found.samples))


def _longest(folder: Path, run_id: str) -> Columns | None:
    rings = [_columns(path) for path in sorted(folder.glob(f"{run_id}*.0{ring.SUFFIX}"))]
    return max((one for one in rings if one is not None), key=len, default=None)


def _columns(path: Path) -> Columns | None:
    block = _block(path)
    return None if block is None else Columns(block, time.monotonic_ns())


def _block(path: Path) -> ring.Block | None:
    """All records of a training's ring; None when it is something else."""
    fd = os.open(path, os.O_RDONLY)
    try:
        header = ring.read_header(fd, os.fstat(fd).st_size)
        if (ring.read_meta(fd) or {}).get("kind") != ring.KIND_TRAINER:
            return None
        return ring.read_block(fd, header, 0, 1 << 30)
    except (ring.RingError, OSError):
        return None
    finally:
        os.close(fd)

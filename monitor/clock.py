"""Time, read once per tick and passed along: no collector looks at a clock of its own."""

from __future__ import annotations

import time
from typing import NamedTuple


class Moment(NamedTuple):
    """One instant on both clocks: wall time is for people, monotonic for arithmetic."""

    wall: float
    monotonic: float

    @classmethod
    def now(cls) -> Moment:
        return cls(time.time(), time.monotonic())

"""Something is switched on and off in blocks of steps: off, on, on, off … How sure is the difference?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import NamedTuple

from ..statistics import student

SETTLE = 2
"""Steps at the begin of a block that count for neither side: queues and caches are those of the last one."""
LEAST_PAIRS, MOST_PAIRS = 5, 24
"""A choice: blocks of either kind before anything is said, and before it is given up."""
NOTHING = 0.01
"""A choice: a gain below this is not worth another setting."""


class Gain(NamedTuple):
    """How many times faster, with its 95 % interval."""

    likely: float
    low: float
    high: float

    @property
    def gains(self) -> bool:
        return self.low > 1.0 and self.likely >= 1.0 + NOTHING

    @property
    def settled(self) -> bool:
        """More blocks would not change what is done."""
        return self.gains or self.high < 1.0 + NOTHING


class Comparison:
    """Told of every step, it switches between blocks. It begins and ends switched off."""

    def __init__(self, flip: Callable[[bool], None], length: int, most: int = MOST_PAIRS) -> None:
        self._flip = flip
        self._length = length
        self._most = most
        self._on = False
        self._step = 0
        self._spent = 0.0
        self._costs: list[float] = []
        """Of the blocks so far, as logarithms of seconds a step; two neighbours are a pair."""

    def step(self, seconds: float) -> bool:
        """A step has ended. Whether that is the end of it all."""
        self._step += 1
        if self._step > SETTLE:
            self._spent += seconds
        if self._step < self._length + SETTLE:
            return False
        self._costs.append(math.log(self._spent / self._length))
        self._step, self._spent = 0, 0.0
        over = self._is_over()
        wanted = not over and len(self._costs) % 4 in (1, 2)
        if wanted != self._on:
            self._flip(wanted)
            self._on = wanted
        return over

    def stop(self) -> None:
        """Before it is over."""
        if self._on:
            self._on = False
            self._flip(False)

    def _is_over(self) -> bool:
        if len(self._costs) % 2 or self.pairs < LEAST_PAIRS:
            return False
        gain = self.gain()
        return self.pairs >= self._most or (gain is not None and gain.settled)

    @property
    def pairs(self) -> int:
        return len(self._costs) // 2

    def gain(self) -> Gain | None:
        """None: too few blocks."""
        if self.pairs < 2:
            return None
        found = [
            (self._costs[at] - self._costs[at + 1]) * (1 if at % 4 == 0 else -1)
            for at in range(0, 2 * self.pairs, 2)
        ]
        likely = statistics.fmean(found)
        wide = student(len(found) - 1) * statistics.stdev(found) / math.sqrt(len(found))
        return Gain(math.exp(likely), math.exp(likely - wide), math.exp(likely + wide))

"""Which steps are delayed, where, and by how much.

Delays come in blocks of neighbouring steps: what hides one of them (a queue, batches that are ready) may pay
it back a step or two later, and within a block that evens out. Between two blocks the loop is left alone, to
compare with.
"""

from __future__ import annotations

import random
import statistics
from collections import deque

PLACES = ("data", "backward", "optimizer")
"""Behind the wait for a batch, before the backward pass, behind the optimizer."""
BLOCK = 8
"""A choice: steps in a row that are delayed in the same place."""
REST = 10
"""A choice: steps without a delay between two blocks, at least."""
JITTER = 8
"""A choice: up to so many more, by chance: what a loop does every so many steps must not fall in with us."""
ENOUGH = 60
"""A choice: so many blocks in one place, and no more are made there."""
SHORT_NS = 1_000_000
OF_STEP = 0.2
"""A choice: a delay is a millisecond, or as much as steps differ by themselves; in quick loops this part of
a step. Enough to be seen beside the noise, too little to use up what hides it."""
FIRST_STEP = 10
"""Warm-up is over."""
REMEMBERED = 64
MAD = 1.4826
"""Makes the median absolute deviation one of a normal distribution."""


class Plan:
    """Told of every step as it begins, it says where that one is delayed."""

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._chance = random.Random(1)  # the script's own random numbers stay as they are
        self._periods: deque[int] = deque(maxlen=REMEMBERED)
        self._began = self._last = self._spent = 0
        self._left = 0
        """Steps of this block; below 0: steps until another may begin."""
        self._place = ""
        self._counts = dict.fromkeys(PLACES, 0)

    def step(self, number: int, now: int) -> str:
        """The place that is delayed in this step; empty: none."""
        if number > FIRST_STEP and self._last and not self._place:
            self._periods.append(now - self._last)
        self._last = now
        self._began = self._began or now
        self._left += 1 if self._left < 0 else -1 if self._left > 0 else 0
        if self._left == 0 and self._place:
            self._place, self._left = "", -REST - self._chance.randrange(JITTER)
        if self._left == 0 and number > FIRST_STEP and self._affordable(now):
            self._begin()
        return self._place

    def _affordable(self, now: int) -> bool:
        if len(self._periods) < REST:
            return False
        return self._spent + BLOCK * self.length_ns() <= self._budget * (now - self._began)

    def _begin(self) -> None:
        """A block in one of the places with the fewest."""
        least = min(self._counts.values())
        if least < ENOUGH:
            self._place = self._chance.choice([at for at, count in self._counts.items() if count == least])
            self._counts[self._place] += 1
            self._left = BLOCK

    def length_ns(self) -> int:
        """Of a delay now."""
        typical = statistics.median(self._periods)
        noise = MAD * statistics.median(abs(one - typical) for one in self._periods)
        return int(min(OF_STEP * typical, max(SHORT_NS, noise)))

    def delayed(self, ns: int) -> None:
        """So long it took in the end."""
        self._spent += ns

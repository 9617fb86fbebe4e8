"""Which steps are delayed, where, and by how much.

Delays come in blocks of neighbouring steps: what hides one of them (a queue, batches that are ready) may pay
it back a step or two later, and within a block that evens out. Between two blocks the loop is left alone, to
compare with.

Blocks come in pairs of two lengths. A step behind any sleep is slower (a core that slept, caches that cooled
down), by much the same whether the sleep was long or short: what both have in common is not the delay's.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import deque

BLOCK = 8
"""A choice: steps in a row that are delayed in the same place."""
SETTLE = 2
"""A delay may show a step or two later: so many steps at the begin of a block, and behind it, count for
neither side."""
REACH = 12
"""A choice: steps before and behind a block that it is compared with."""
REST = SETTLE + REACH
"""Steps without a delay between two blocks, at least."""
JITTER = 8
"""A choice: up to so many more, by chance: what a loop does every so many steps must not fall in with us."""
ENOUGH = 60
"""A choice: so many pairs of blocks in one place, and no more are made there."""
MOST_PLACES = 6
"""A choice: what little may be spent is not spread over more."""
OFTEN = 0.9
"""A choice: a place that is passed in fewer of the steps makes no blocks."""
LONG_NS = 2_000_000
OF_STEP = 0.2
"""A choice: a long delay is two milliseconds, or three times what steps differ by themselves; in quick loops
this part of a step. Enough to be seen beside the noise, too little to use up what hides it."""
OF_NOISE = 3.0
SHORT = 0.1
"""A choice: a short delay, as a part of the long one. The shorter it is, the more of what may be spent goes
to the long ones, which tell; none at all would not cost what every sleep does."""
FIRST_STEP = 10
"""Warm-up is over."""
REMEMBERED = 120
MAD = 1.4826
"""Makes the median absolute deviation one of a normal distribution."""


class Block:
    """Neighbouring steps that are delayed in one place."""

    __slots__ = ("first", "is_long", "last", "made", "place", "scale_ns", "spent_ns")

    def __init__(self, place: str, is_long: bool, scale_ns: int) -> None:
        self.place = place
        self.is_long = is_long
        self.scale_ns = scale_ns
        """The long delay of its pair."""
        self.first = self.last = 0
        """Steps with a delay."""
        self.made = self.spent_ns = 0

    @property
    def delay_ns(self) -> int:
        """What a delay is to be."""
        return self.scale_ns if self.is_long else int(SHORT * self.scale_ns)

    def delayed(self, step: int, ns: int) -> None:
        self.first, self.last = self.first or step, step
        self.made += 1
        self.spent_ns += ns

    def other_half(self) -> Block:
        return Block(self.place, not self.is_long, self.scale_ns)


class Plan:
    """Told of every step as it begins, it says which block that one is part of."""

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._chance = random.Random(1)  # the script's own random numbers stay as they are
        self._periods: deque[int] = deque(maxlen=REMEMBERED)
        self._began = self._last = self._spent = 0
        self._number = 0
        self._left = 0
        """Steps of this block; below 0: steps until another may begin."""
        self._block: Block | None = None
        self._half: Block | None = None
        """The second of a pair, to come next."""
        self._passed: dict[str, tuple[int, int]] = {}
        """Place → in how many steps it was passed, and in which one last."""
        self._pairs: dict[str, int] = {}
        self.clear: set[str] = set()
        """Places about which enough is known."""
        self.done = False
        """Enough is known about all of them."""

    def step(self, number: int, now: int) -> Block | None:
        """The block this step belongs to, if any."""
        if number > FIRST_STEP and self._last and self._block is None:
            self._periods.append(now - self._last)
        self._last, self._number = now, number
        self._began = self._began or now
        self._left += 1 if self._left < 0 else -1 if self._left > 0 else 0
        if self._left == 0 and self._block is not None:
            self._block, self._left = None, -REST - self._chance.randrange(JITTER)
        if self._left == 0 and len(self._periods) >= REST:
            self._begin(now)
        return self._block

    def passed(self, place: str) -> None:
        """The loop has come to this place; in one step perhaps several times."""
        count, last = self._passed.get(place, (0, 0))
        if last != self._number > FIRST_STEP:
            self._passed[place] = count + 1, self._number

    def delayed(self, block: Block, ns: int) -> None:
        """So long it took in the end."""
        self._spent += ns
        block.delayed(self._number, ns)

    def _begin(self, now: int) -> None:
        if self._spent > self._budget * (now - self._began):
            return
        block = self._half or self._new_pair()
        if block is None or self._spent + BLOCK * block.delay_ns > self._budget * (now - self._began):
            return
        self._half = None if block is self._half else block.other_half()
        self._block, self._left = block, BLOCK
        self._pairs[block.place] = self._pairs.get(block.place, 0) + (self._half is None)

    def _new_pair(self) -> Block | None:
        """The first block of one, in a place with the fewest."""
        open_ = [one for one in self._places() if self._pairs.get(one, 0) < ENOUGH and one not in self.clear]
        self.done = not open_ and bool(self._pairs)
        if not open_:
            return None
        least = min(self._pairs.get(one, 0) for one in open_)
        place = self._chance.choice([one for one in open_ if self._pairs.get(one, 0) == least])
        return Block(place, self._chance.random() < 0.5, self.length_ns())

    def _places(self) -> list[str]:
        """What is passed in nearly every step, in the order it was first seen."""
        steps = self._number - FIRST_STEP
        return [one for one, (count, _) in self._passed.items() if count >= OFTEN * (steps - 1)][:MOST_PLACES]

    def length_ns(self) -> int:
        """Of a long delay now."""
        return int(min(OF_STEP * statistics.median(self._periods), max(LONG_NS, OF_NOISE * self._noise())))

    def _noise(self) -> float:
        """What steps differ by, as a block sees it: stalls that come often count, a checkpoint does not."""
        periods, size = list(self._periods), BLOCK - SETTLE
        blocks = [sum(periods[at : at + size]) / size for at in range(0, len(periods) - size + 1, size)]
        middle = statistics.median(blocks)
        return MAD * math.sqrt(size) * statistics.median(abs(one - middle) for one in blocks)

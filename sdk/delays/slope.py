"""How much of a delay the steps become longer by: from blocks with long and blocks with short delays.

What a step loses behind any sleep, however short, is in both kinds of blocks and falls out of the difference.
A point is one block: its delay and by how much its steps were longer, both as parts of the long delay.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

from ..statistics import student

Point = tuple[float, float]

LEAST_BLOCKS = 6
"""Of either kind: fewer say nothing."""
TRIMMED = 0.2
"""A choice: this part of the blocks is left out at either end: a stall of the machine hits whole blocks."""
RESAMPLED = 400
SYSTEMATIC = 0.06
"""What no number of blocks takes away: places with a known truth of 1 came out at 0.98 to 1.12 on a CPU,
mostly above 1 (tests/benchmarks/criticality, 2026-11-20). Probably caches, which cool further in a longer
delay."""
LEAST_APART = 0.2
"""The two kinds must differ by so much of the long delay: else the machine sleeps as long as it likes."""


def slope(long: Sequence[Point], short: Sequence[Point]) -> float | None:
    """None where there are too few blocks, or their delays hardly differ."""
    if min(len(long), len(short)) < LEAST_BLOCKS:
        return None
    apart, longer = (_trimmed([p[at] for p in long]) - _trimmed([p[at] for p in short]) for at in (0, 1))
    return longer / apart if apart >= LEAST_APART else None


def quick_error(long: Sequence[Point], short: Sequence[Point]) -> float:
    """The standard error by formula (winsorized deviations): cheap enough for a training's loop."""
    apart = _trimmed([p[0] for p in long]) - _trimmed([p[0] for p in short])
    return math.sqrt(sum(_winsorized_variance([p[1] for p in side]) for side in (long, short))) / apart


def spread(long: Sequence[Point], short: Sequence[Point]) -> tuple[float, float]:
    """The standard error, and the half-width of the 95 % interval with what is systematic: blocks are drawn
    again and again from those there are, each kind from its own."""
    chance = random.Random(1)
    drawn = (_drawn(chance, long, short) for _ in range(RESAMPLED))
    few = min(len(long), len(short))
    # What is drawn from n blocks differs by the square root of (n - 1) / n of what new blocks would.
    error = statistics.stdev(one for one in drawn if one is not None) * math.sqrt(few / (few - 1))
    return error, math.hypot(student(_freedom(few)) * error, SYSTEMATIC)


def _freedom(blocks: int) -> int:
    """Of two trimmed means: the blocks that are left count."""
    return max(1, 2 * (blocks - 2 * int(TRIMMED * blocks) - 1))


def _drawn(chance: random.Random, long: Sequence[Point], short: Sequence[Point]) -> float | None:
    return slope(chance.choices(long, k=len(long)), chance.choices(short, k=len(short)))


def _trimmed(values: Sequence[float]) -> float:
    """The mean without the ends."""
    cut = int(TRIMMED * len(values))
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def _winsorized_variance(values: Sequence[float]) -> float:
    """Of the trimmed mean."""
    ordered, cut = sorted(values), int(TRIMMED * len(values))
    low, high = ordered[cut], ordered[len(ordered) - cut - 1]
    kept = [min(max(one, low), high) for one in ordered]
    return statistics.variance(kept) / ((1 - 2 * TRIMMED) ** 2 * len(ordered))

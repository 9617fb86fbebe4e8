"""How sure a ratio of two arms is, from how much runs of the same arm differ.

Every run gives one figure. What two runs of the same arm differ by is the noise, whatever its reason; it is
pooled over all arms, as in an analysis of variance, because each of them has only a few runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from sdk.statistics import student

SAME = 0.03
"""A choice: within so much of 1 nobody would change a script."""
NARROW = 0.05
"""A choice: a ratio known to so much is known."""


class Ratio(msgspec.Struct, frozen=True):
    """How many times faster, with its 95 % interval."""

    likely: float
    low: float
    high: float

    @property
    def gains(self) -> bool:
        return self.low > 1.0

    @property
    def loses(self) -> bool:
        return self.high < 1.0

    @property
    def clear(self) -> bool:
        """More runs would tell nothing new: it is narrow, or nowhere near 1 at a tenth of the change."""
        width = (self.high - self.low) / 2.0 / self.likely
        if self.low > 1.0 - SAME and self.high < 1.0 + SAME:
            return True
        change = abs(math.log(self.likely))
        return (self.gains or self.loses) and width <= max(NARROW, change / 4.0)


def noise(arms: Sequence[Sequence[float]]) -> tuple[float, int]:
    """The pooled deviation of a run's logarithm, and its degrees of freedom; 0 of them: not known."""
    squares, freedom = 0.0, 0
    for costs in arms:
        if len(costs) > 1:
            squares += statistics.variance(map(math.log, costs)) * (len(costs) - 1)
            freedom += len(costs) - 1
    return (math.sqrt(squares / freedom) if freedom else 0.0), freedom


def ratio_of(before: Sequence[float], after: Sequence[float], deviation: float, freedom: int) -> Ratio | None:
    """Of the costs of two arms: how many times less the second one costs."""
    if not before or not after or not freedom:
        return None
    likely = statistics.fmean(map(math.log, before)) - statistics.fmean(map(math.log, after))
    wide = student(freedom) * deviation * math.sqrt(1.0 / len(before) + 1.0 / len(after))
    return Ratio(math.exp(likely), math.exp(likely - wide), math.exp(likely + wide))

"""How a run's step times are spread: bins of equal width on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from monitor.model.run import STEP_BUCKETS, Rank

MOST_BINS = 48
LEAST_STEPS = 20
"""Fewer steps make no useful picture."""
WIDEST = 0.001
"""Share of the longest steps that is cut off the picture; they are counted instead."""


class Bin(Struct, frozen=True):
    """Steps of at least `low` and less than `high` seconds."""

    low: float
    high: float
    count: int


class Distribution(Struct, frozen=True):
    steps: int
    bins: tuple[Bin, ...]
    longer: int = 0
    """Steps longer than the last bin."""


def distribution(seconds: Sequence[float]) -> Distribution | None:
    """Of individual steps; None when there are too few."""
    known = sorted(one for one in seconds if one > 0.0)
    if len(known) < LEAST_STEPS:
        return None
    low, high = known[0], known[min(len(known) - 1, int(len(known) * (1.0 - WIDEST)))]
    bins = min(MOST_BINS, round(2.0 * math.sqrt(len(known))))
    step = max(math.log(high / low) / bins, 1e-3)
    counts = [0] * bins
    for one in known:
        if one <= high:
            counts[min(bins - 1, int(math.log(one / low) / step))] += 1
    edges = [low * math.exp(step * at) for at in range(bins + 1)]
    made = tuple(Bin(*one) for one in zip(edges, edges[1:], counts, strict=False))
    return Distribution(len(known), made, len(known) - sum(counts))


def coarse_distribution(rank: Rank) -> Distribution | None:
    """From the counters, where individual steps were not kept: a few wide bins."""
    counts = rank.histogram
    if sum(counts) < LEAST_STEPS:
        return None
    edges = (STEP_BUCKETS[0] / 2.5, *STEP_BUCKETS, STEP_BUCKETS[-1] * 2.0)
    bins = [Bin(low, high, count) for low, high, count in zip(edges, edges[1:], counts, strict=False)]
    used = [at for at, one in enumerate(bins) if one.count]
    return Distribution(sum(counts), tuple(bins[used[0] : used[-1] + 1]))

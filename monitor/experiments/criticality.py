"""How critical a place of the loop is: how much of a short delay put there the steps become longer.

1: a second saved there is a second won. 0: it is hidden behind the device, the loader or another rank. It
holds for small changes: a delay larger than what hides it becomes critical, so it bounds a gain and does not
size it.

Delays come in blocks of neighbouring steps. Each block is compared with the steps without a delay around it,
so whatever changes slowly (neighbours on the machine, longer samples) is the same on both sides, and how much
blocks differ is the error.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

import msgspec

SETTLE = 2
"""A delay may show a step or two later: so many steps at the begin of a block, and behind it, count for
neither side."""
REACH = 10
"""Steps before and behind a block that it is compared with."""
LEAST_STEPS = 4
LEAST_BLOCKS = 6
"""Fewer blocks in a place say nothing about it."""
STALL = 5.0
"""A choice: a step so many times as long as usual is something else (a checkpoint, an evaluation)."""
TRIMMED = 0.2
"""A choice: this part of the blocks is left out at either end: a stall of the machine hits whole blocks."""
CLEAR = 0.1
"""A choice: the standard error below which a slope is known."""

Delay = tuple[int, str, int]


class Criticality(msgspec.Struct, frozen=True):
    """Of one place."""

    place: str
    slope: float
    error: float
    """Standard error of the slope."""
    delays: int

    @property
    def margin(self) -> float:
        """The slope is within this of the truth in 19 of 20 cases."""
        return 2 * self.error

    @property
    def clear(self) -> bool:
        return self.error <= CLEAR


class _Block(msgspec.Struct, frozen=True):
    place: str
    first: int
    last: int
    seconds: float
    """Of a delay, on average."""
    count: int


def criticality(delays: Sequence[Delay], periods: Mapping[int, float]) -> list[Criticality]:
    """Of every place with enough blocks. `periods` are seconds by the number of a step; on a device they are
    the device's own."""
    blocks = list(_blocks(delays))
    usual = _without_stalls(periods)
    quiet = set(usual).difference(*(range(one.first, one.last + SETTLE + 1) for one in blocks))
    found = []
    for place in sorted({one.place for one in blocks}):
        own = [one for one in blocks if one.place == place]
        slopes = [slope for one in own if (slope := _slope(one, usual, quiet)) is not None]
        if len(slopes) >= LEAST_BLOCKS:
            found.append(Criticality(place, *_trimmed(slopes), sum(one.count for one in own)))
    return found


def _blocks(delays: Sequence[Delay]) -> Iterator[_Block]:
    """Neighbouring steps with a delay in the same place; one that was passed over does not end a block."""
    open_: list[Delay] = []
    for one in sorted(delays):
        if open_ and (one[1] != open_[-1][1] or one[0] > open_[-1][0] + SETTLE):
            yield _block(open_)
            open_ = []
        open_.append(one)
    if open_:
        yield _block(open_)


def _block(made: Sequence[Delay]) -> _Block:
    first, last = made[0][0], made[-1][0]
    return _Block(made[0][1], first, last, sum(ns for _, _, ns in made) / 1e9 / (last - first + 1), len(made))


def _without_stalls(periods: Mapping[int, float]) -> dict[int, float]:
    if not periods:
        return {}
    longest = STALL * statistics.median(periods.values())
    return {step: seconds for step, seconds in periods.items() if seconds <= longest}


def _slope(block: _Block, periods: Mapping[int, float], quiet: set[int]) -> float | None:
    """What a step of this block takes longer than those around it, as a part of the delay."""
    inside = [periods[step] for step in range(block.first + SETTLE, block.last + 1) if step in periods]
    around = range(block.first - REACH, block.last + SETTLE + REACH + 1)
    beside = [periods[step] for step in around if step in quiet]
    if min(len(inside), len(beside)) < LEAST_STEPS:
        return None
    return (statistics.fmean(inside) - statistics.fmean(beside)) / block.seconds


def _trimmed(slopes: Sequence[float]) -> tuple[float, float]:
    """The mean without the ends, and its standard error (from the winsorized deviation)."""
    ordered = sorted(slopes)
    count = len(ordered)
    cut = int(TRIMMED * count)
    kept = ordered[cut : count - cut]
    winsorized = [min(max(one, kept[0]), kept[-1]) for one in ordered]
    return statistics.fmean(kept), statistics.stdev(winsorized) / ((1 - 2 * TRIMMED) * math.sqrt(count))

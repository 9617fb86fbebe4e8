"""Axes: round numbers for the marks of a chart, and their labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from monitor.model import units

TIME_STEPS = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400,
    21600, 43200, 86400, 172800, 604800,
)  # fmt: skip
HEADROOM = 1.08


class Tick(NamedTuple):
    at: float
    """Place on the axis, 0 to 1."""
    text: str


class Scale(NamedTuple):
    """A range of numbers, and the marks on it."""

    first: float
    last: float
    ticks: tuple[Tick, ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Position from 0 to 1, clamped."""
        if self.logarithmic:
            part = math.log(max(value, self.first) / self.first) / math.log(self.last / self.first)
        else:
            part = (value - self.first) / (self.last - self.first)
        return min(1.0, max(0.0, part))


def of_time(length: float, begin: float = 0.0, marks: int = 5) -> Scale:
    """`length` seconds of a run, from its start or from a later moment."""
    length = max(length, 1e-9)
    step = next((one for one in TIME_STEPS if length / one <= marks), TIME_STEPS[-1])
    at = range(math.ceil(begin / step), math.floor((begin + length) / step) + 1)
    ticks = tuple(Tick((n * step - begin) / length, units.moment(n * step, step)) for n in at)
    return Scale(begin, begin + length, ticks)


def from_zero(highest: float, text: Callable[[float], str], marks: int = 3) -> Scale:
    """From 0 to a little above the highest value."""
    high = highest * HEADROOM if highest > 0 else 1.0
    step = _binary_step(high / marks) if text is units.size else _round_step(high / marks)
    ticks = tuple(Tick(at * step / high, text(at * step)) for at in range(1, int(high / step) + 1))
    return Scale(0.0, high, ticks)


def between(lowest: float, highest: float, text: Callable[[float], str], marks: int = 3) -> Scale:
    """Fits the values, for quantities without a meaningful zero, such as a loss."""
    margin = (highest - lowest) * (HEADROOM - 1.0) or abs(highest) * 0.1 or 1.0
    low, high = lowest - margin, highest + margin
    step = _round_step((high - low) / marks)
    first = math.ceil(low / step)
    at = range(first, math.floor(high / step) + 1)
    return Scale(low, high, tuple(Tick((n * step - low) / (high - low), text(n * step)) for n in at))


def logarithmic(low: float, high: float, text: Callable[[float], str]) -> Scale:
    """For times that span orders of magnitude: marks at 1, 2 and 5 of every power of ten."""
    high = max(high, low * 1.01)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    wide = math.log(high / low)
    ticks = [Tick(math.log(one / low) / wide, text(one)) for one in values if low <= one <= high]
    return Scale(low, high, tuple(_thinned(ticks)), logarithmic=True)


def _thinned(ticks: Sequence[Tick], apart: float = 0.14) -> list[Tick]:
    kept: list[Tick] = []
    for tick in ticks:
        if not kept or tick.at - kept[-1].at >= apart:
            kept.append(tick)
    return kept


def _binary_step(wanted: float) -> float:
    """Round in KiB, MiB, GiB and so on: a power of two."""
    return 2.0 ** math.ceil(math.log2(wanted))


def _round_step(wanted: float) -> float:
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(digit * power for digit in (1, 2, 2.5, 5, 10) if digit * power >= wanted)

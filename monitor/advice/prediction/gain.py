"""What a change of the step would gain: the likely ratio and its range.

Removed work also leaves the caches to the rest: milliseconds of other work between two passes make each
of them start cold, at the price of refilling about a second-level cache (`COLD_SECONDS` a phase).

The gain is T / (T - saved), so what is left decides it, and the more is removed the less is known about
the rest. The range follows from that: the rule's own doubt about what is removed (`low`, `high`) and the
doubt about the rest are independent and add up as squares, on the scale of ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, hypot, log, log1p, sqrt
from typing import NamedTuple

from monitor.advice.prediction.step_model import USUAL, Change, Luck, StepModel, scaled
from monitor.model.finding import Speedup

DIGITS = 3
"""Decimals of a gain in a finding."""
MAX_SPEEDUP = 1000.0
"""A bound against division by nearly nothing; no finding comes near it."""
COLD_SECONDS, COLD_SHARE = 120e-6, 0.45
"""What a phase loses by beginning with cold caches, at most: a megabyte or two read again, and never
more than this share of it."""
COLD_AFTER = 3e-3
"""This much work in between causes half of that loss."""
RUN_DOUBT = 0.12
"""How much (as the logarithm of a ratio) the rest of a step differs between two runs of one script with
nothing changed, minutes apart on a machine with neighbours."""
REST_DOUBT = 0.15
"""How much more that is, downwards, when the rest is all that a remedy leaves."""
REMOVED_DOUBT, MOST_OFF = 0.04, 0.5
"""How well the seconds are known that a remedy removes: a half of the step is told to 2.6 points by 360
samples, and the rest is seen with the caches that they leave. So much too little may have been counted; the
smaller the rest, the more that is of it, but half of it stays. These three were set on the 75 gains of the
old corpus as measured on 2026-11-16, of which 88 % are then inside their ranges."""
DOUBT_SHARE = 0.6
"""Runs differ, but whether there is a gain at all is not in doubt: at most this share of its logarithm."""
BORROWED_DOUBT = 0.3
"""How far (as the logarithm of a ratio) a gain that follows from prices was off on another CPU than the one
they were measured on: ×1.64 was predicted where ×1.21 came true, ×2.34 for ×1.48."""
FEW_DOUBT = 0.5
"""How far a single step is from the usual one, as the logarithm of a ratio: the doubt about the mean of n
steps is that over the square root of n. Judgement: 20 steps are known to a tenth."""
BAD_LUCK, GOOD_LUCK = Luck(host=1.1), Luck(host=0.8, along=0.6)
"""On a device, what the host's own time may be in the next run, as a factor (it is the time of Python and of
launches, on caches that stay warm when it waits less); and how much of the device's work may go with the host
time that launched it, as when many small operations become one. Judgement."""
LESS, MORE = 0.85, 1.1
"""How much of a change happens at least and at most where its rule has no bounds of its own."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What a remedy does to the step; `low` and `high` where its rule has bounds of its own."""

    likely: Change
    low: Change | None = None
    high: Change | None = None

    @property
    def most(self) -> Change:
        """The change for the most gain its rule claims; where it has no bounds of its own, the likely one:
        that removes all that was measured."""
        return self.high if self.high is not None else self.likely


class Bounds(NamedTuple):
    """Values of something a rule is not sure about: for the least gain, the likely one and the most."""

    low: float
    likely: float
    high: float

    def of(self, change: Callable[[float], Change]) -> Outcomes:
        """The change made with each value."""
        return Outcomes(low=change(self.low), likely=change(self.likely), high=change(self.high))

    def part_of(self, change: Change, most: Change | None = None) -> Outcomes:
        """Each value as the share of a change that happens; for the most gain, of `most`."""
        return Outcomes(
            low=scaled(change, self.low),
            likely=scaled(change, self.likely),
            high=scaled(most or change, self.high),
        )

    def times(self, factor: float) -> Bounds:
        return Bounds(*(value * factor for value in self))


def ratio(model: StepModel, change: Change, luck: Luck = USUAL) -> float:
    """Samples per second after the change over before; at least 1."""
    after = model.apply(change)
    period = after.period
    if change.batch == change.everything == 1.0 and after.workers <= 0:
        period -= _warmer(after, model.period - period)
    return _bounded(model, change, period, luck)


def plain_ratio(model: StepModel, change: Change) -> float:
    """The same for what the change itself removes, nothing added for warmer caches."""
    return _bounded(model, change, model.apply(change).period)


def _bounded(model: StepModel, change: Change, period: float, luck: Luck = USUAL) -> float:
    if model.period <= 0:
        return 1.0
    return min(MAX_SPEEDUP, max(1.0, change.batch * model.ratio(change, period, luck)))


def _warmer(after: StepModel, gone: float) -> float:
    """Seconds the rest of the step gets back because its caches stay warm when `gone` seconds go."""
    if gone <= 0:
        return 0.0
    cold = sum(min(COLD_SHARE * seconds, COLD_SECONDS) for seconds in (*after.parts.values(), after.wait))
    return cold * gone / (gone + COLD_AFTER)


def predict(model: StepModel, outcomes: Outcomes, why: str) -> Speedup:
    """Low, likely and high for one remedy, in order whatever the three changes are."""
    most = at_most(model, outcomes)
    borrowed = BORROWED_DOUBT if model.borrowed_prices and _priced(outcomes.likely) else 0.0
    few = FEW_DOUBT / sqrt(model.steps) if model.steps else 0.0
    more = hypot(borrowed, few)
    least = at_least(model, outcomes, BAD_LUCK)
    return in_range(ratio(model, outcomes.likely), least, most, why, more)


def _priced(change: Change) -> bool:
    """Whether what is left follows from prices: of handing over batches, or of operations."""
    return change.workers is not None or change.batch != 1.0


def at_least(model: StepModel, outcomes: Outcomes, luck: Luck = USUAL) -> float:
    """The gain when as little of the change happens as its rule allows for."""
    return ratio(model, outcomes.low if outcomes.low is not None else scaled(outcomes.likely, LESS), luck)


def at_most(model: StepModel, outcomes: Outcomes) -> float:
    """The gain when as much of it happens."""
    most = outcomes.high if outcomes.high is not None else scaled(outcomes.likely, MORE)
    return ratio(model, most, GOOD_LUCK)


def in_range(likely: float, least: float, most: float, why: str, more: float = 0.0) -> Speedup:
    """The range around a likely gain: the rule's own bounds widened by the doubt about the rest, and by
    `more`."""
    least, most = max(1.0, min(least, likely)), max(most, likely)
    below, above = (hypot(one, min(more, DOUBT_SHARE * log(likely))) for one in doubts(likely))
    low = max(1.0, likely * exp(-hypot(log(likely / least), below)))
    high = min(MAX_SPEEDUP, likely * exp(hypot(log(most / likely), above)))
    return speedup(low, likely, max(high, likely), why)


def doubts(likely: float) -> tuple[float, float]:
    """How far below and above a gain may come out, as logarithms of a ratio, where all of a change happens:
    runs differ, and what is left is the whole step without what was measured beside it."""
    runs, gone = min(RUN_DOUBT, DOUBT_SHARE * log(likely)), 1.0 - 1.0 / likely
    return runs + REST_DOUBT * gone * gone, runs - log1p(-min(MOST_OFF, REMOVED_DOUBT * (likely - 1.0)))


def widened(gain: Speedup, error: float | None) -> Speedup:
    """The range at least as wide as this rule was wrong before, at the median: |predicted / realised - 1|."""
    if not error:
        return gain
    low, high = max(1.0, gain.likely / (1.0 + error)), gain.likely * (1.0 + error)
    return speedup(min(gain.low, low), gain.likely, max(gain.high, min(MAX_SPEEDUP, high)), gain.why)


def speedup(low: float, likely: float, high: float, why: str) -> Speedup:
    """A gain that is known without the step model."""
    return Speedup(round(low, DIGITS), round(likely, DIGITS), round(high, DIGITS), why)

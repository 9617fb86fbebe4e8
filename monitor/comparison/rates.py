"""How fast a run was, how certain that is, and how much a run varies on its own.

A run is a list of stretches: work done, and the seconds it took. Intervals are bootstraps over them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Literal

from monitor.model.run import Run, Window

ROUNDS = 1000
"""Bootstrap resamples; the ends of the interval are then accurate to about a percent."""
CONFIDENCE = 0.95
"""The usual convention."""
LEAST_STRETCHES = 4
"""Fewer stretches say nothing about a run's spread."""
SEED = 20240517
"""Fixed, so that the same two runs always compare the same."""

Unit = Literal["samples/s", "steps/s"]

Stretch = tuple[float, float]
"""Work done and the seconds it took."""


def has_samples(run: Run) -> bool:
    return any(window.samples_per_second for window in run.timeline) or bool(run.samples_per_second)


def stretches_of(run: Run, unit: Unit) -> list[Stretch]:
    """The run's timeline as work and time, without warm-up but with stalls, which are part of the rate."""
    return [
        (_work(window, unit) * _share_of_run(run, unit), window.steps_seconds)
        for window in run.timeline
        if window.steps and window.steps_seconds > 0
    ]


def _work(window: Window, unit: Unit) -> float:
    if unit == "steps/s":
        return float(window.steps)
    return (window.samples_per_second or 0.0) * window.steps_seconds


def _share_of_run(run: Run, unit: Unit) -> float:
    """The timeline is the first rank's, but the samples of all ranks count."""
    own = run.ranks[0].samples if run.ranks else 0
    if unit == "steps/s" or not own:
        return 1.0
    return sum(rank.samples for rank in run.ranks) / own


def rate(stretches: Sequence[Stretch]) -> float | None:
    seconds = sum(took for _, took in stretches)
    return sum(work for work, _ in stretches) / seconds if seconds else None


def plain_rate(run: Run, unit: Unit) -> float | None:
    return run.samples_per_second if unit == "samples/s" else run.iterations_per_second


def ratio(before: float | None, after: float | None) -> float | None:
    return after / before if before and after else None


def interval_of(one: list[Stretch], two: list[Stretch]) -> tuple[float | None, float | None]:
    """Bootstrap interval of the ratio of rates."""
    if len(one) < LEAST_STRETCHES or len(two) < LEAST_STRETCHES:
        return None, None
    chance = random.Random(SEED)
    found = sorted(_drawn(two, chance) / _drawn(one, chance) for _ in range(ROUNDS))
    edge = (1.0 - CONFIDENCE) / 2.0
    return found[int(edge * ROUNDS)], found[math.ceil((1.0 - edge) * ROUNDS) - 1]


def _drawn(stretches: list[Stretch], chance: random.Random) -> float:
    """The rate of a resample. Neighbours are drawn together: what slows one second slows the next."""
    length = max(1, round(math.sqrt(len(stretches))))
    starts = chance.choices(range(len(stretches)), k=math.ceil(len(stretches) / length))
    work = took = 0.0
    for start in starts:
        for at in range(start, start + length):
            piece = stretches[at % len(stretches)]
            work += piece[0]
            took += piece[1]
    return max(work, 1e-12) / took


def noise_of(stretches: list[Stretch]) -> float:
    """The null test: the change this bootstrap finds between a run and itself, where there is none."""
    if len(stretches) < LEAST_STRETCHES:
        return 0.0
    chance = random.Random(SEED)
    draws = ROUNDS // 4
    found = sorted(abs(_drawn(stretches, chance) / _drawn(stretches, chance) - 1.0) for _ in range(draws))
    return found[int(CONFIDENCE * draws)]

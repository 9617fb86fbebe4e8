"""Interleaved medians of the data path and of whole training steps, equality checked first."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence

from tests.benchmarks.trainers.subject import Apart

ROUNDS = 7, 40
"""Rounds of a row: at least, at most."""
NARROW = 0.03
"""A ratio is known when its interval is no wider than this share of it on either side …"""


def check_equal(subjects: Sequence[Apart], tolerance: float) -> float:
    """Largest relative difference of any row's losses from the naive ones; raises above the bound."""
    reference, worst = subjects[0].facts["losses"], 0.0
    for subject in subjects:
        if not subject.row.compare:
            continue
        for mine, naive in zip(subject.facts["losses"], reference, strict=True):
            worst = max(worst, abs(mine - naive) / abs(naive))
        if worst > tolerance:
            raise AssertionError(f"{subject.row.label}: losses differ from the naive run by {worst:.2g}")
    return worst


def measure_steps(subjects: Sequence[Apart], steps: int, seconds: float) -> None:
    """Whole steps, one row after the other, round and round until every ratio is known or time is up."""
    end = time.perf_counter() + seconds
    for done in range(ROUNDS[1]):
        if done >= ROUNDS[0] and (all_known(subjects, "step_seconds") or time.perf_counter() > end):
            return
        for subject in subjects:
            count = steps * subject.longer
            taken = subject.ask("steps", count)
            subject.step_seconds.append(taken / (count * subject.facts["batch_size"]))
            subject.settle(taken / count)


def measure_data(subjects: Sequence[Apart], steps: int, seconds: float) -> None:
    """Batches only, without a model."""
    for subject in subjects:
        subject.ask("fetch", 1)
    end = time.perf_counter() + seconds
    for done in range(ROUNDS[1]):
        if done >= ROUNDS[0] and (all_known(subjects, "data_seconds") or time.perf_counter() > end):
            return
        for subject in subjects:
            subject.drain()
            samples, taken = subject.ask("fetch", steps * subject.longer)
            subject.data_seconds.append(taken / samples)
            subject.settle(taken / steps)


def all_known(subjects: Sequence[Apart], what: str) -> bool:
    """Whether every row's interval is narrow, or clearly on one side of 1."""
    for subject in subjects[1:]:
        low, middle, high = interval(getattr(subjects[0], what), getattr(subject, what))
        if (high - low) / 2 > NARROW * middle and low <= 1 <= high:
            return False
    return True


def median(values: list[float]) -> float:
    return statistics.median(values)


def interval(before: list[float], after: list[float]) -> tuple[float, float, float]:
    """Low, median and high of before/after, round by round: 95 % by resampling the rounds."""
    ratios = [b / a for b, a in zip(before, after, strict=True)]
    generator = random.Random(0)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(400))
    return medians[9], statistics.median(ratios), medians[-10]

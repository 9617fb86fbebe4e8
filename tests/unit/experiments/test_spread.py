"""Ratios with their intervals, and when they are conclusive."""

from __future__ import annotations

import random

import pytest

from monitor.experiments.spread import Ratio, noise, ratio_of


def test_twice_as_fast_with_a_percent_of_noise() -> None:
    before, after = [1.0, 1.01], [0.5, 0.505]
    ratio = ratio_of(before, after, *noise([before, after]))
    assert ratio is not None and ratio.likely == pytest.approx(2.0)
    assert 1.9 < ratio.low < 2.0 < ratio.high < 2.1 and ratio.clear


def test_one_run_of_each_says_nothing() -> None:
    assert ratio_of([1.0], [0.5], *noise([[1.0], [0.5]])) is None


def test_the_interval_holds_the_truth_nineteen_times_in_twenty() -> None:
    chance = random.Random(5)
    held = 0
    for _ in range(1000):
        arms = [[chance.lognormvariate(0.0, 0.05) / gain for _ in range(3)] for gain in (1.0, 1.3, 1.0, 2.0)]
        ratio = ratio_of(arms[0], arms[1], *noise(arms))
        held += ratio is not None and ratio.low <= 1.3 <= ratio.high
    assert 930 <= held <= 970


@pytest.mark.parametrize(
    ("ratio", "clear"),
    [
        (Ratio(1.0, 0.98, 1.02), True),
        (Ratio(1.0, 0.9, 1.1), False),
        (Ratio(1.2, 1.15, 1.25), True),
        (Ratio(1.2, 0.99, 1.45), False),
        (Ratio(3.0, 2.5, 3.6), True),
    ],
)
def test_clear(ratio: Ratio, clear: bool) -> None:
    assert ratio.clear is clear

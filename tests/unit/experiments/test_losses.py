from __future__ import annotations

import math

from monitor.experiments.losses import agreement


def test_bit_for_bit() -> None:
    found = agreement([0.5, math.nan, 2.0], [0.5, math.nan, 2.0, 9.0])
    assert (found.same, found.compared) == ("equal", 3)


def test_rounding_grows_with_the_steps_and_is_judged_in_the_first() -> None:
    one = [1.0] * 40
    other = [1.0 + 1e-7 * 1.6**step for step in range(40)]
    found = agreement(one, other)
    assert found.same == "rounding" and found.largest is not None and found.largest < 1e-4


def test_other_random_numbers() -> None:
    assert agreement([1.0, 0.9], [1.1, 0.7]).same == "differ"


def test_nothing_to_compare() -> None:
    assert agreement([], [1.0]).same == "unknown"


def test_a_loss_that_breaks_is_no_rounding() -> None:
    assert agreement([1.0, 1.0], [1.0, math.nan]).same == "differ"

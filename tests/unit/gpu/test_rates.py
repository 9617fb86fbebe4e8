"""Counters become rates only when that is honest."""

from __future__ import annotations

import pytest

from monitor.gpu.fields import Rate, WideRate


def test_a_rate_needs_two_readings_and_time_between() -> None:
    rate = Rate(1024)
    assert rate(1000, 10.0) is None
    assert rate(1000, 10.0) is None
    assert rate(3000, 12.0) == pytest.approx(1000 * 1024)


def test_a_counter_that_was_reset_gives_nothing_once() -> None:
    rate = Rate(1)
    rate(5000, 1.0)
    assert rate(10, 2.0) is None
    assert rate(20, 3.0) == 10


def test_a_counter_that_may_be_narrow_is_not_trusted() -> None:
    rate = WideRate(1)
    rate(100, 1.0)
    assert rate(4_000_000_000, 2.0) is None
    assert rate(5_000_000_000, 3.0) == 1_000_000_000

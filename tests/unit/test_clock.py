"""A wall clock that was set is told apart from one that merely runs."""

from __future__ import annotations

import pytest

from monitor.model.clock import SETTLE_SECONDS, Moment, WallWatch

START = Moment(1_750_000_000.0, 5000.0)


def after(seconds: float, *, jump: float = 0.0, asleep: float = 0.0) -> Moment:
    return Moment(START.wall + seconds + jump, START.monotonic + seconds - asleep, START.slept + asleep)


def test_time_that_passes_is_no_jump() -> None:
    watch = WallWatch()
    assert [watch.see(after(tick * 1.0)) for tick in range(10)] == [0.0] * 10
    assert watch.see(after(5000.0)) == 0.0, "a tick that took long"
    assert watch.see(after(40_000.0, asleep=30_000.0)) == 0.0, "a machine that slept"
    assert watch.is_settled(after(40_000.0, asleep=30_000.0))


def test_a_clock_that_drifts_is_no_jump() -> None:
    watch = WallWatch()
    assert not any(watch.see(after(tick, jump=tick * 0.5)) for tick in range(1000))


@pytest.mark.parametrize("days", [40, -40])
def test_a_jump_and_back(days: int) -> None:
    watch, jump = WallWatch(), days * 86400.0
    watch.see(START)
    assert watch.is_settled(START), "nobody has touched it as far as we know"
    assert watch.see(after(1.0, jump=jump)) == pytest.approx(jump)
    assert watch.see(after(66.0, jump=jump)) == 0.0, "it runs on from where it was set"
    assert not watch.is_settled(after(66.0, jump=jump))
    assert watch.see(after(67.0)) == pytest.approx(-jump)
    assert not watch.is_settled(after(68.0))
    assert watch.is_settled(after(67.0 + SETTLE_SECONDS))


def test_a_clock_that_stays_as_it_was_set_is_believed_in_the_end() -> None:
    watch = WallWatch()
    watch.see(START)
    watch.see(after(1.0, jump=1e6))
    assert not watch.is_settled(after(SETTLE_SECONDS - 10.0, jump=1e6))
    assert watch.is_settled(after(SETTLE_SECONDS + 10.0, jump=1e6))


def test_the_machines_own_clocks() -> None:
    watch, first = WallWatch(), Moment.now()
    watch.see(first)
    later = Moment.now()
    assert watch.see(later) == 0.0 and later.monotonic >= first.monotonic and later.slept >= 0.0

"""Slopes against the known truth, on exactly simulated loops, with the delays a real run would get."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from monitor.cli.probe import BUDGET
from monitor.experiments.criticality import Delay, criticality
from sdk.delays.plan import PLACES, Plan

HOST, STEPS = 0.004, 12_000


class Loop:
    """Steps in simulated time; `one` makes a step with these delays by place and returns its period."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.delays: list[Delay] = []
        self.periods: dict[int, float] = {}

    def run(self, one: Callable[[int, dict[str, float]], float]) -> dict[str, float]:
        plan, now = Plan(BUDGET), 0.0
        for step in range(1, STEPS):
            place, late = plan.step(step, int(now * 1e9) + 1), dict.fromkeys(PLACES, 0.0)
            if place:
                late[place] = plan.length_ns() / 1e9
                plan.delayed(plan.length_ns())
                self.delays.append((step, place, plan.length_ns()))
            self.periods[step] = one(step, late)
            now += self.periods[step]
        assert sum(ns for _, _, ns in self.delays) <= (BUDGET + 0.001) * now * 1e9
        return {one.place: one.slope for one in criticality(self.delays, self.periods)}

    def noise(self, deviation: float) -> float:
        return abs(self.chance.gauss(0, deviation))


def everywhere(slope: float) -> object:
    return pytest.approx(dict.fromkeys(PLACES, slope), abs=0.1)


def test_a_loop_paced_by_the_host_is_critical_everywhere() -> None:
    loop = Loop(1)
    assert loop.run(lambda _, late: HOST + loop.noise(0.0004) + sum(late.values())) == everywhere(1.0)


def test_a_device_hides_what_the_host_does() -> None:
    """The host launches ahead of the device: the device's own period is unaffected by the delays."""
    loop, host, device = Loop(2), 0.0, 0.0

    def one(_: int, late: dict[str, float]) -> float:
        nonlocal host, device
        host += 0.001 + sum(late.values())
        before, device = device, max(device, host) + 0.005 + loop.noise(0.0001)
        host = max(host, device - 0.010)  # the queue is two steps deep
        return device - before

    assert loop.run(one) == everywhere(0.0)


def test_what_a_queue_repays_in_the_next_step_is_hidden() -> None:
    """Seen from the host: after the update, a delay makes this step longer and the next one shorter."""
    loop, owed = Loop(3), 0.0

    def one(_: int, late: dict[str, float]) -> float:
        nonlocal owed
        found = 0.005 + loop.noise(0.0002) + late["optimizer"] - owed
        owed = late["optimizer"]
        return found

    assert loop.run(one) == everywhere(0.0)


def test_a_loader_hides_the_rest_of_the_loop() -> None:
    """Two batches arrive together every 12 ms, and the loop needs 4 ms for each."""
    loop, now, ready = Loop(4), 0.0, 0.0

    def one(step: int, late: dict[str, float]) -> float:
        nonlocal now, ready
        ready += 0.012 + loop.noise(0.0001) if step % 2 else 0.0
        before, now = now, max(now, ready) + HOST + sum(late.values())
        return now - before

    assert loop.run(one) == everywhere(0.0)


@pytest.mark.parametrize(("own", "other", "truth"), [(0.006, 0.004, 1.0), (0.004, 0.006, 0.0)])
def test_the_slower_of_two_ranks_is_critical(own: float, other: float, truth: float) -> None:
    loop = Loop(5)
    assert loop.run(lambda _, late: max(own + sum(late.values()), other) + loop.noise(0.0001)) == everywhere(
        truth
    )


def test_checkpoints_and_drifts_are_left_out() -> None:
    loop = Loop(6)

    def one(step: int, late: dict[str, float]) -> float:
        drift = 0.002 * (step / STEPS)
        return HOST + drift + loop.noise(0.0004) + sum(late.values()) + (0.3 if step % 50 == 0 else 0.0)

    assert loop.run(one) == everywhere(1.0)


def test_a_noisy_loop_gets_longer_delays() -> None:
    """A millisecond would be lost in steps of 100 ms that vary by 5."""
    loop = Loop(7)
    loop.run(lambda _, late: 0.1 + loop.chance.gauss(0, 0.005) + sum(late.values()))
    assert all(ns > 2_000_000 for _, _, ns in loop.delays)
    assert all(abs(one.slope - 1.0) < 3 * one.error for one in criticality(loop.delays, loop.periods))


def test_too_few_delays_say_nothing() -> None:
    made = [(step, "data", 1_000_000) for step in range(20, 28)]
    assert criticality(made, dict.fromkeys(range(1, STEPS), HOST)) == []
    assert criticality([], {}) == []

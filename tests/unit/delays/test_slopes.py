"""Slopes against known truth, on loops that are simulated exactly, with the delays a real run would get."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from monitor.cli.probe import BUDGET
from monitor.model.criticality import Criticality
from monitor.runs.criticality import criticality, read_places
from sdk.delays.extra import extra_ns
from sdk.delays.inject import Found
from sdk.delays.plan import REACH, SETTLE, Block, Plan

PLACES = ("data", "backward", "optimizer")
HUGE = {"data": {"long": [[10**400, 1.0]], "delays": 10**400}}
HOST, STEPS = 0.004, 16_000


class Loop:
    """Steps in simulated time; `one` makes a step with these delays by place and gives its period."""

    def __init__(self, seed: int, places: tuple[str, ...] = PLACES) -> None:
        self.chance = random.Random(seed)
        self.places = places
        self.blocks: list[Block] = []
        self.periods: dict[int, int] = {}
        self.found: dict[str, Found] = {}

    def run(
        self, one: Callable[[int, dict[str, float]], float], steps: int = STEPS
    ) -> dict[str, Criticality]:
        plan, now, spent = Plan(BUDGET), 0.0, 0.0
        for step in range(1, steps):
            block, late = plan.step(step, int(now * 1e9) + 1), dict.fromkeys(self.places, 0.0)
            if block is not None and (not self.blocks or block is not self.blocks[-1]):
                self.blocks.append(block)
            for place in self.places:
                plan.passed(place)
            if block is not None:
                late[block.place] = block.delay_ns / 1e9
                plan.delayed(block, block.delay_ns)
                spent += block.delay_ns / 1e9
            self.periods[step] = int(1e9 * one(step, late))
            now += self.periods[step] / 1e9
        assert spent <= (BUDGET + 0.001) * now
        return self.slopes(steps)

    def slopes(self, steps: int) -> dict[str, Criticality]:
        for block in self.blocks:
            found = self.found.setdefault(block.place, Found())
            extra = extra_ns(block, self.periods)
            if extra is not None:
                found.add(block, extra)
        meta = {place: found.as_meta() for place, found in self.found.items()}
        return {one.place: one for one in criticality(read_places(meta), steps)}

    def paced_by_the_host(self, _: int, late: dict[str, float]) -> float:
        stall = 8 if self.chance.random() < 0.03 else 1
        return HOST + stall * self.noise(0.0003) + sum(late.values())

    def noise(self, deviation: float) -> float:
        return abs(self.chance.gauss(0, deviation))


def are_all(found: dict[str, Criticality], truth: float) -> None:
    """Every slope is this one: to a tenth, or to four of its own errors."""
    assert set(found) == set(PLACES)
    for one in found.values():
        assert one.slope is not None and one.error is not None
        assert abs(one.slope - truth) <= max(0.1, 4 * one.error), found


def test_a_loop_paced_by_the_host_is_critical_everywhere() -> None:
    loop = Loop(1)
    are_all(loop.run(lambda _, late: HOST + loop.noise(0.0004) + sum(late.values())), 1.0)


def test_a_device_hides_what_the_host_does() -> None:
    """The host launches ahead of the device: the device's own period knows nothing of the delays."""
    loop, host, device = Loop(2), 0.0, 0.0

    def one(_: int, late: dict[str, float]) -> float:
        nonlocal host, device
        host += 0.001 + sum(late.values())
        before, device = device, max(device, host) + 0.005 + loop.noise(0.0001)
        host = max(host, device - 0.010)  # the queue is two steps deep
        return device - before

    are_all(loop.run(one), 0.0)


def test_what_a_queue_repays_in_the_next_step_is_hidden() -> None:
    """Seen from the host: behind the update a delay makes this step longer and the next one shorter."""
    loop, owed = Loop(3), 0.0

    def one(_: int, late: dict[str, float]) -> float:
        nonlocal owed
        found = 0.005 + loop.noise(0.0002) + late["optimizer"] - owed
        owed = late["optimizer"]
        return found

    are_all(loop.run(one), 0.0)


def test_a_loader_hides_the_rest_of_the_loop() -> None:
    """Two batches come together every 12 ms, and the loop needs 4 for each."""
    loop, now, ready = Loop(4), 0.0, 0.0

    def one(step: int, late: dict[str, float]) -> float:
        nonlocal now, ready
        ready += 0.012 + loop.noise(0.0001) if step % 2 else 0.0
        before, now = now, max(now, ready) + HOST + sum(late.values())
        return now - before

    are_all(loop.run(one), 0.0)


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_batches_that_come_together_hide_a_quick_loop(workers: int) -> None:
    """The workers of a loader that paces the loop keep step: one step waits, the next few do not."""
    loop, now, ready = Loop(11), 0.0, 0.0

    def one(step: int, late: dict[str, float]) -> float:
        nonlocal now, ready
        ready += workers * HOST + loop.noise(0.0002) if step % workers == 0 else 0.0
        before, now = now, max(now, ready) + 0.001 + sum(late.values())
        return now - before

    are_all(loop.run(one), 0.0)


@pytest.mark.parametrize(("own", "other", "truth"), [(0.006, 0.004, 1.0), (0.004, 0.006, 0.0)])
def test_the_slower_of_two_ranks_is_critical(own: float, other: float, truth: float) -> None:
    loop = Loop(5)
    found = loop.run(lambda _, late: max(own + sum(late.values()), other) + loop.noise(0.0001))
    are_all(found, truth)


def test_checkpoints_and_drifts_are_left_out() -> None:
    loop = Loop(6)

    def one(step: int, late: dict[str, float]) -> float:
        drift = 0.002 * (step / STEPS)
        return HOST + drift + loop.noise(0.0004) + sum(late.values()) + (0.3 if step % 50 == 0 else 0.0)

    are_all(loop.run(one), 1.0)


def test_what_every_sleep_costs_is_not_counted_as_the_delays() -> None:
    """A step behind a sleep is slower, however short the sleep was: seen as 1.08 to 1.14 with one length."""
    loop = Loop(8)

    def one(_: int, late: dict[str, float]) -> float:
        delay = sum(late.values())
        return HOST + loop.noise(0.0002) + delay + (0.00015 if delay else 0.0)

    are_all(loop.run(one), 1.0)


def test_a_noisy_loop_gets_longer_delays() -> None:
    """Two milliseconds would be lost in steps of 100 ms that differ by 5."""
    loop = Loop(7)
    found = loop.run(lambda _, late: 0.1 + loop.chance.gauss(0, 0.005) + sum(late.values()))
    assert all(block.scale_ns > 4_000_000 for block in loop.blocks)
    assert found
    for one in found.values():
        assert one.slope is not None and one.margin is not None
        assert abs(one.slope - 1.0) < 1.5 * one.margin


def test_the_margin_holds_the_truth_19_times_of_20() -> None:
    """Over many short runs with heavy tails; a tenth outside would be a margin that flatters."""
    outside = told = 0
    for seed in range(40):
        loop = Loop(100 + seed)
        found = loop.run(loop.paced_by_the_host, steps=4000)
        for one in found.values():
            if one.slope is not None and one.margin is not None:
                told += 1
                outside += abs(one.slope - 1.0) > one.margin
    assert told > 60
    assert outside / told < 0.1


def test_a_place_that_is_seldom_passed_gets_no_block() -> None:
    plan, places = Plan(BUDGET), set()
    for step in range(1, 4000):
        block = plan.step(step, step * 10_000_000)
        plan.passed("optimizer")
        if step % 20 == 0:
            plan.passed("checkpoint")
        if block is not None:
            places.add(block.place)
            plan.delayed(block, block.delay_ns)
    assert places == {"optimizer"}


def test_what_is_known_is_left_alone() -> None:
    plan, seen = Plan(BUDGET), []
    for step in range(1, 4000):
        block = plan.step(step, step * 10_000_000)
        for place in PLACES:
            plan.passed(place)
        if block is not None and step > 2000:
            plan.clear.add("data")
            seen.append(block.place)
    assert seen[50:] and "data" not in seen[50:]


def test_two_lengths_in_every_place_as_often() -> None:
    loop = Loop(9)
    loop.run(lambda _, late: HOST + loop.noise(0.0001) + sum(late.values()))
    for place in PLACES:
        long, short = (
            [block for block in loop.blocks if block.place == place and block.is_long is kind]
            for kind in (True, False)
        )
        assert abs(len(long) - len(short)) <= 1


def test_too_few_delays_say_nothing_but_how_many_steps_it_takes() -> None:
    loop = Loop(10)
    found = loop.run(lambda _, late: HOST + sum(late.values()), steps=700)
    assert found
    assert all(one.slope is None and one.judgement == "not known" for one in found.values())
    assert any(one.more_steps for one in found.values())


def test_a_block_beside_a_checkpoint_is_compared_without_it() -> None:
    block = Block("data", True, 1_000_000)
    for step in range(100, 108):
        block.delayed(step, 1_000_000)
    periods = dict.fromkeys(range(100 - REACH, 108 + SETTLE + REACH), 4_000_000)
    periods |= dict.fromkeys(range(100, 108), 5_000_000) | {97: 300_000_000, 104: 300_000_000}
    assert extra_ns(block, periods) == pytest.approx(1_000_000)


@pytest.mark.parametrize(
    "meta", [None, [], {"data": 1}, {"data": {"long": [[1]]}}, {"data": {"delays": -1}}, HUGE]
)
def test_what_no_probe_wrote_is_nothing(meta: object) -> None:
    assert read_places(meta) == ()


def test_hidden_promises_nothing_and_what_is_not_clear_bounds_nothing() -> None:
    hidden = Criticality("data", 100, 0.1, slope=0.05, error=0.04, margin=0.08)
    assert (hidden.judgement, hidden.most) == ("hidden", 0.0)
    partly = Criticality("data", 100, 0.1, slope=0.5, error=0.05, margin=0.1)
    assert (partly.judgement, partly.most) == ("partly hidden", pytest.approx(0.6))
    doubtful = Criticality("data", 10, 0.01, slope=0.0, error=0.3, margin=0.6, more_steps=9000)
    assert (doubtful.judgement, doubtful.most) == ("not clear", 1.0)
    assert doubtful.words[2] == "not clear: about 9,000 more steps would tell"

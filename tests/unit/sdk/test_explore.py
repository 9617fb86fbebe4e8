"""The search in a running training, in simulated time: what is faster stays; what is not, or fails, goes."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from sdk.explore import explorer as module
from sdk.explore.comparison import LEAST_PAIRS, MOST_PAIRS, Comparison
from sdk.explore.explorer import AGAIN, CHECK_SHARE, Candidate, Explorer
from sdk.knobs.catalog import KNOBS
from sdk.knobs.knob import Flip, Outcome, Place, Switch


class Fake(Switch):
    """Makes steps this many times as long while it is on."""

    def __init__(self, factor: float, *, fails: bool = False) -> None:
        self.factor = factor
        self.on = False
        self._fails = fails

    def apply(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        outcome.applied("")
        self._flip(value)
        return self._flip

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        outcome.applied("")
        return self._flip

    def _flip(self, on: bool) -> None:
        if on and self._fails:
            raise RuntimeError("no such kernel")
        self.on = on


class Optimizer:
    """Irrelevant to the knobs here."""


class Training:
    """Steps of about 10 ms, in simulated time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **knobs: Fake) -> None:
        self.knobs = knobs
        for name, knob in knobs.items():
            monkeypatch.setitem(KNOBS, name, knob)
        monkeypatch.setattr(module, "live_candidates", lambda _: [(name, "on") for name in knobs])
        self._chance = random.Random(1)
        self.steps = self._now = 0
        self.off = dict.fromkeys(knobs, 0)
        """Steps without each."""
        self._optimizer = Optimizer()

    def run(self, explorer: Explorer, steps: int) -> None:
        for _ in range(steps):
            self.steps += 1
            factor = 1.0
            for name, knob in self.knobs.items():
                factor *= knob.factor if knob.on else 1.0
                self.off[name] += not knob.on
            self._now += int(1e7 * factor * self._chance.uniform(0.95, 1.1))
            explorer.stepped(self._optimizer, self._now)

    def off_share(self, name: str) -> float:
        return self.off[name] / self.steps

    def explorer(self, *given: str, before: float | None = None) -> Explorer:
        """With the settings that are given in force, or searching for some."""
        place, outcome = Place(SimpleNamespace(), lambda: self.steps), Outcome("")
        found = [
            Candidate(f"{name}=on", outcome, self.knobs[name].apply(place, True, outcome)) for name in given
        ]
        return Explorer(place.torch, place.steps, found or None, before=before)


def test_what_is_faster_stays_and_the_rest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, good=Fake(0.8), bad=Fake(1.3), idle=Fake(1.0))
    found = training.explorer()
    training.run(found, 6000)
    assert found.told()["stays"] == ["good=on"] and training.knobs["good"].on
    assert not training.knobs["bad"].on and not training.knobs["idle"].on
    assert found.together is not None and found.together.likely == pytest.approx(1.25, abs=0.03)
    assert [one["setting"] for one in found.tried] == ["good=on", "bad=on", "idle=on"]
    assert found.notes == []


def test_it_steps_back_when_a_setting_is_not_faster_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, good=Fake(0.8))
    found = training.explorer()
    training.run(found, 1500)
    assert training.knobs["good"].on
    training.knobs["good"].factor = 1.2
    training.run(found, AGAIN * 3000)
    assert not training.knobs["good"].on and found.told()["stays"] == []
    assert found.notes == ["good=on: not clearly faster, taken back"]


def test_settings_that_were_given_are_on_at_once_and_compared_later(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, good=Fake(0.5), bad=Fake(1.1))
    found = training.explorer("good", "bad", before=0.01)
    assert training.knobs["good"].on and training.knobs["bad"].on
    training.run(found, 20_000)
    assert found.told()["stays"] == ["good=on", "bad=on"] and found.tried == []
    assert found.together is not None and found.together.likely == pytest.approx(1.82, abs=0.05)
    assert 0 < training.off_share("good") < 2 * CHECK_SHARE


def test_a_run_too_short_to_compare_keeps_all_of_a_large_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, good=Fake(1 / 85))
    found = training.explorer("good", before=0.01)
    training.run(found, 500)
    assert training.knobs["good"].on and found.told()["stays"] == ["good=on"]
    assert training.off["good"] == 0 and found.together is None, "nothing is claimed, either"


def test_a_busy_moment_at_the_start_is_not_the_settings_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, good=Fake(0.8))
    found = training.explorer("good", before=0.01)
    training.knobs["good"].factor = 2.0
    training.run(found, 40)
    training.knobs["good"].factor = 0.8
    training.run(found, 460)
    assert training.off["good"] == 0


def test_given_settings_that_are_slower_than_none_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, good=Fake(1.5))
    found = training.explorer("good", before=0.01)
    training.run(found, 600)
    assert not training.knobs["good"].on
    assert found.notes == ["good=on: not clearly faster, taken back"]


def test_a_setting_that_fails_is_taken_back_and_the_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, good=Fake(0.8), broken=Fake(0.5, fails=True))
    found = training.explorer()
    training.run(found, 6000)
    assert not training.knobs["good"].on and not training.knobs["broken"].on
    assert found.notes == ["RuntimeError: no such kernel; every setting was taken back"]


def test_blocks_are_balanced_and_end_switched_off() -> None:
    flips: list[bool] = []
    comparison, chance, on = Comparison(flips.append, 8), random.Random(2), False
    steps: Any = iter(range(100_000))
    while not comparison.step(0.01 * chance.uniform(0.9, 1.1) * (0.99 if on else 1.0)):
        on = bool(flips) and flips[-1]
        next(steps)
    assert LEAST_PAIRS <= comparison.pairs <= MOST_PAIRS
    assert flips[-1] is False
    gain = comparison.gain()
    assert gain is not None and gain.low < 1.01 < gain.high

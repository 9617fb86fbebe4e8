"""The same script twice: noise of a few percent does not change which cause comes first."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from monitor.advice.engine import Engine
from monitor.advice.ranking import ranked
from monitor.model.finding import Finding, Speedup
from monitor.model.run import LoaderTimes, Phase, Rank, Run, Stall, Times
from monitor.model.snapshot import Snapshot
from tests.unit.advice.test_rules import CASES

NOISE, ROUNDS, SAME = 0.03, 100, 0.95


class Noise:
    """Every measured second and share, a few percent off."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def off(self, value: Any) -> Any:
        return value * (1.0 + NOISE * self._chance.uniform(-1.0, 1.0)) if isinstance(value, float) else value

    def struct(self, value: Any) -> Any:
        changed = {name: self.off(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **changed)

    def rank(self, rank: Rank) -> Rank:
        phases = [self._phase(phase) for phase in rank.phases]
        total = sum(phase.mean_seconds for phase in phases) or 1.0
        shares = [msgspec.structs.replace(one, share=one.mean_seconds / total) for one in phases]
        times: Times = msgspec.structs.replace(rank.step, mean=total, p50=self.off(rank.step.p50))
        loader: LoaderTimes = self.struct(rank.loader)
        return msgspec.structs.replace(rank, phases=tuple(shares), step=times, whole=times, loader=loader)

    def _phase(self, phase: Phase) -> Phase:
        changed: Phase = self.struct(phase)
        return changed

    def run(self, run: Run) -> Run:
        ranks = tuple(map(self.rank, run.ranks))
        stalls: tuple[Stall, ...] = tuple(map(self.struct, run.stalls))
        spots = [spot | {"share": self.off(spot["share"])} for spot in run.config.get("hotspots", [])]
        config = run.config | ({"hotspots": spots} if spots else {})
        phases = ranks[0].phases if ranks else ()
        return msgspec.structs.replace(
            run, ranks=ranks, stalls=stalls, config=config, phases=phases, state="ended", live=False
        )


def first_cause(snapshot: Snapshot) -> str:
    findings = Engine().once(snapshot).findings
    return findings[0].id if findings else ""


@pytest.mark.parametrize("id", sorted(CASES))
def test_noise_does_not_change_the_first_cause(id: str) -> None:
    given = CASES[id][0]
    said = Counter(
        first_cause(msgspec.structs.replace(given, runs=tuple(map(Noise(seed).run, given.runs))))
        for seed in range(ROUNDS)
    )
    assert said.most_common(1)[0][1] >= SAME * ROUNDS, said


def finding(id: str, low: float, likely: float, high: float, share: float = 0.3) -> Finding:
    return Finding(id, "warning", id, speedup=Speedup(low, likely, high), share=share)


def order(*findings: Finding) -> list[str]:
    return [one.id for one in ranked(findings)]


def test_gains_that_cannot_be_told_apart_are_ordered_by_what_does_not_follow_the_noise() -> None:
    one, two = finding("b.b", 1.3, 1.60, 1.9), finding("a.a", 1.3, 1.58, 1.9)
    swapped = finding("b.b", 1.3, 1.57, 1.9), finding("a.a", 1.3, 1.61, 1.9)
    assert order(one, two) == order(two, one) == order(*swapped) == ["a.a", "b.b"]
    assert order(finding("b.b", 1.3, 1.6, 1.9, share=0.5), two) == ["b.b", "a.a"], "clearly more seconds"


def test_a_gain_that_is_clearly_larger_comes_first() -> None:
    assert order(finding("a.a", 1.1, 1.2, 1.3), finding("b.b", 1.6, 1.9, 2.2)) == ["b.b", "a.a"]


def test_a_measured_gain_comes_before_one_from_the_literature() -> None:
    waits, assumed = finding("z.waits", 1.1, 1.22, 1.3), finding("a.amp", 1.08, 1.36, 1.6)
    assert order(waits, assumed) == ["a.amp", "z.waits"]
    assert assumed.speedup is not None
    unverified = msgspec.structs.replace(assumed.speedup, verified_on="none")
    assumed = msgspec.structs.replace(assumed, speedup=unverified)
    assert order(waits, assumed) == ["z.waits", "a.amp"]
    small = finding("z.waits", 1.0, 1.02, 1.03)
    assert order(small, assumed) == ["a.amp", "z.waits"], "but not if it is nearly nothing"

"""Which steps are stalls, what they are called, and what is not a stall."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.model.run import Stall
from sdk import ring
from tests.unit.runs.rings import MS, Script
from tests.unit.runs.test_figures import read

DATA, FORWARD, VALIDATE, CHECKPOINT, LOG = 0, 2, 6, 7, 8


def stalls(script: Script) -> dict[str, Stall]:
    return {stall.kind: stall for stall in read(script).ranks[0].stalls}


def test_validation_counts_even_when_each_is_short(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for number in range(1, 201):
        short = {VALIDATE: 5.0} if number % 10 == 0 else {}
        script.step(10.0 + (5.0 if short else 0.0), {FORWARD: 8.0, **short})
    found = stalls(script)["validate"]
    assert (found.count, found.every_steps, found.last_step) == (20, 10.0, 200)
    assert found.total_seconds == pytest.approx(0.1)
    assert found.share == pytest.approx(0.1 / 2.1)
    assert read(script).ranks[0].step.p99 == pytest.approx(0.010, rel=0.02)


def test_each_cause_has_its_name(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for number in range(1, 1001):
        phases, words, extra = {DATA: 1.0, FORWARD: 8.0}, {}, 0.0
        if number % 100 == 0:
            phases, extra = {DATA: 201.0, FORWARD: 8.0}, 200.0
        elif number % 100 == 50:
            words, extra = {"gc": 150 * MS}, 160.0
        elif number % 250 == 30:
            phases, words, extra = {DATA: 1.0, FORWARD: 308.0}, {"flags": ring.F_COMPILED}, 300.0
        elif number % 250 == 40:
            phases, words, extra = {DATA: 401.0, FORWARD: 8.0}, {"flags": ring.F_EPOCH_START}, 400.0
        elif number % 250 == 60:
            phases, extra = {DATA: 1.0, FORWARD: 8.0, LOG: 90.0}, 90.0
        elif number % 250 == 70:
            extra = 80.0
        script.step(10.0 + extra, phases, **words)
    found = stalls(script)
    assert {kind: stall.count for kind, stall in found.items()} == {
        "data": 10, "gc": 10, "recompile": 4, "epoch_start": 4, "log": 4, "other": 4,
    }  # fmt: skip
    assert found["data"].every_steps == 100.0
    assert found["data"].total_seconds == pytest.approx(2.0, rel=0.02)


def test_a_loader_that_delivers_in_bursts_is_not_stalling(tmp_path: Path) -> None:
    """GIVEN eight workers whose batches arrive together WHEN every eighth step waits THEN it is steady."""
    script = Script(tmp_path)
    for number in range(400):
        waits = 200.0 if number % 8 == 0 else 0.1
        script.step(5.0 + waits, {DATA: waits})
    assert stalls(script) == {}
    shares = {phase.name: phase.share for phase in read(script).phases}
    assert shares["data"] > 0.8


def test_a_new_pace_is_not_a_stall(tmp_path: Path) -> None:
    """GIVEN a run that becomes eight times slower for good THEN that is its pace now."""
    script = Script(tmp_path)
    script.steps([5.0] * 400)
    script.steps([40.0] * 600)
    rank = read(script).ranks[0]
    assert sum(stall.count for stall in rank.stalls) <= 8
    assert rank.step.p50 == pytest.approx(0.040, rel=0.02)


def test_irregular_stalls_have_no_period(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for number in range(1, 501):
        script.step(300.0 if number in (20, 35, 140, 150, 410) else 10.0)
    (found,) = stalls(script).values()
    assert found.count == 5 and found.every_steps is None

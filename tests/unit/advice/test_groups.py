"""Identical findings are shown as one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from monitor.advice.engine import Engine
from monitor.model import facts
from monitor.model.finding import Finding, Speedup
from monitor.model.gpu import Errors
from monitor.model.groups import grouped, numbers
from monitor.model.snapshot import Snapshot
from tests.unit.advice.build import gpu_of, run_of, snapshot_of
from tests.unit.advice.shapes import starved


def judged(snapshot: Snapshot) -> Snapshot:
    return facts.judge(Engine().once(snapshot))


def test_one_cause_on_many_gpus_is_one_group() -> None:
    broken = Errors(ecc_uncorrected_volatile=2)
    gpus = [gpu_of(index=at, uuid=f"GPU-{at}", errors=broken if at != 3 else Errors()) for at in range(8)]
    hot = replace(gpus[3], throttle={"sw_thermal_slowdown": True})
    snapshot = judged(snapshot_of(gpus=(*gpus[:3], hot, *gpus[4:])))
    errors, heat = snapshot.groups
    assert (errors.rule, errors.severity) == ("device.memory_errors", "critical")
    assert errors.title == "Memory errors on GPUs 0–2 and 4–7" and errors.subject == "GPUs 0–2 and 4–7"
    assert [snapshot.findings[at].gpu for at in errors.findings] == [
        f"GPU-{at}" for at in (0, 1, 2, 4, 5, 6, 7)
    ]
    assert heat.title == snapshot.findings[heat.findings[0]].title and heat.subject == "GPU 3"


def test_runs_stay_apart_and_what_was_run_again_is_left_out() -> None:
    sick = starved(0)
    old = replace(sick, id="old", state="ended", started=sick.started - 100)
    other = replace(sick, id="other", name="other", pids=(11,))
    snapshot = judged(snapshot_of(sick, old, other))
    assert {finding.run for finding in snapshot.findings} == {"r", "old", "other"}
    slow = [group for group in snapshot.groups if group.rule == "input.slow_getitem"]
    assert sorted(group.subject for group in slow) == ["other", "r"]
    assert all(len(group.findings) == 1 for group in snapshot.groups)


def test_what_others_do_to_all_runs_is_one_group() -> None:
    """GIVEN four live runs on cores that somebody else keeps busy THEN it is said once, of all of them, with
    a gain only if it is the same; a run that is over has its own."""
    crowded = Finding("compute.contention", "hint", "Others use 97 %", cause="CPU contention", live=True)
    gains = [Speedup(1.0, 1.2, 1.4)] * 3 + [Speedup(1.0, 1.1, 1.2)]
    found = [
        replace(crowded, run=name, subject=name, speedup=gain)
        for name, gain in zip("abcd", gains, strict=True)
    ]
    over = replace(crowded, run="e", subject="e", live=False)
    live, ended = grouped([*found, over], snapshot_of())
    assert (live.subject, live.title, live.speedup) == ("a, b and 2 more", "CPU contention", None)
    assert live.findings == (0, 1, 2, 3) and (ended.subject, ended.title) == ("e", "Others use 97 %")
    (same,) = grouped(found[:2], snapshot_of())
    assert same.subject == "a, b" and same.speedup == gains[0]


def test_groups_come_in_the_order_of_the_findings() -> None:
    snapshot = judged(snapshot_of(starved(0), run_of(id="well", name="well", pids=(12,))))
    places = [group.findings[0] for group in snapshot.groups]
    assert places == sorted(places) and len(places) == len(snapshot.findings)


@pytest.mark.parametrize(
    ("values", "text"), [([4], "4"), ([2, 0, 1], "0–2"), ([0, 1, 5], "0–1 and 5"), ([9, 1, 3], "1, 3 and 9")]
)
def test_numbers_are_joined(values: list[int], text: str) -> None:
    assert numbers(values) == text

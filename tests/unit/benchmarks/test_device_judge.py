"""The device benchmark's own judgement, on made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.advice.rule import all_rules
from tests.benchmarks import device
from tests.benchmarks.device import frozen, report, rows
from tests.benchmarks.device.case import SCRIPTS, Case
from tests.benchmarks.device.catalog import CASES
from tests.benchmarks.device.figures import figures
from tests.benchmarks.device.judge import Row, judge
from tests.benchmarks.device.measure import Run, Truth

SICK = Case("price_bar", "reads the loss", ("compute.sync_every_step",), least_idle=0.1)
LAUNCHES = Case("store_heads", "many launches", ("compute.launch_bound",), launch_bound=True)
HEALTHY = Case("ok_gan", "")


def truth(idle: float = 0.2, step: float = 0.02) -> Truth:
    return Truth(step, 100, idle, {"data": 0.0, "launch": idle, "sync": 0.0, "copy": 0.0})


def watched(idle: float, starved: float | None, *findings: dict[str, Any]) -> Run:
    report = {"findings": list(findings), "starved_ratio": starved, "verdict": "fine"}
    return Run(truth(idle), report=report)


def finding(id: str, likely: float | None = None, severity: str = "warning") -> dict[str, Any]:
    speedup = {"low": likely * 0.9, "likely": likely, "high": likely * 1.1} if likely else None
    return {"id": id, "severity": severity, "title": id, "speedup": speedup}


def sick_row(case: Case, run: Run, gain: float = 1.25) -> Row:
    return judge(case, run, Run(truth(step=0.02)), Run(truth(step=0.02 / gain)))


def test_idle_share_within_five_points_and_gain_inside_the_range() -> None:
    row = sick_row(SICK, watched(0.2, 0.23, finding("compute.sync_every_step", 1.3)))
    assert row.idle_right and row.first and row.inside
    assert row.gain == pytest.approx(1.25)
    far = sick_row(SICK, watched(0.2, 0.3, finding("compute.amp_off", 1.4)), gain=1.25)
    assert far.idle_right is False and far.first is False and far.inside is None


def test_no_figure_is_not_a_right_one() -> None:
    assert sick_row(SICK, watched(0.2, None)).idle_right is False


def test_launch_bound_is_a_class_and_a_bound() -> None:
    named = finding("compute.launch_bound", 2.0)
    assert sick_row(LAUNCHES, watched(0.9, 0.5, named)).idle_right, "a lower bound is true"
    assert not sick_row(LAUNCHES, watched(0.5, 0.9, named)).idle_right, "more than the truth is not"
    assert not sick_row(LAUNCHES, watched(0.9, 0.9, finding("compute.amp_off"))).idle_right


def test_a_healthy_run_is_promised_nothing() -> None:
    quiet = judge(HEALTHY, watched(0.02, 0.01, finding("healthy.ok", None, "info")), None, None)
    warned = judge(HEALTHY, watched(0.02, 0.01, finding("input.no_workers")), None, None)
    promised = judge(HEALTHY, watched(0.02, 0.01, finding("compute.amp_off", 1.4, "hint")), None, None)
    assert [quiet.false_alarm, warned.false_alarm, promised.false_alarm] == [False, True, True]
    busy = judge(HEALTHY, watched(0.3, 0.3, finding("compute.launch_bound")), None, None)
    assert busy.disturbed and busy.false_alarm is None
    assert figures([quiet, warned, promised, busy])["false_alarms"] == 2


def test_every_script_has_a_case_and_every_expected_rule_exists() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {case.script for case in CASES}
    assert {id for case in CASES for id in case.expected} <= {rule.id for rule in all_rules()}
    assert sum(case.healthy for case in CASES) >= 12 and len(CASES) >= 40


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "FILE", tmp_path / "rows.jsonl")
    measured: list[str] = []

    def measure(case: Case) -> Row:
        if len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(case.script)
        return Row(case.script, case.cause, list(case.expected), case.digest(), rows.product())

    both = [SICK, LAUNCHES]
    assert [row.script for row in device.collect(both, 1, measure)] == ["price_bar"]
    measured.clear()
    assert [row.script for row in device.collect(both, 1, measure)] == ["price_bar", "store_heads"]
    assert measured == ["store_heads"]


def test_what_was_said_at_first_look_is_kept_for_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "FILE", tmp_path / "rows.jsonl")
    monkeypatch.setattr(rows, "FIRST", tmp_path / "first.jsonl")
    first = sick_row(SICK, watched(0.2, 0.3, finding("compute.amp_off", 1.4)))
    later = sick_row(SICK, watched(0.2, 0.2, finding("compute.sync_every_step", 1.3)))
    first.look, later.look = "first look", "seen 2026-01-01"
    for row in (first, later):
        rows.keep(row)
    assert [row.first for row in rows.first_looks()] == [False]
    shown = report.page([later], rows.first_looks(), "2026-01-01")
    assert "| cause named first | 100 % | 0 % | ≥ 90 % |" in shown


def test_a_first_look_is_one_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "FILE", tmp_path / "frozen.json")
    assert frozen.look(SICK) == "not frozen"
    assert frozen.freeze([SICK]) == ["price_bar"]
    assert frozen.look(SICK) == "first look"
    frozen.mark_seen(SICK)
    assert frozen.look(SICK).startswith("seen ")
    changed = Case("price_bar", "", ("compute.amp_off",))
    assert frozen.look(changed).startswith("changed after ")
    assert frozen.freeze([changed]) == [], "what gpumon has seen is not frozen anew"

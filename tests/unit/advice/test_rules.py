"""Every rule fires on its cause and stays silent without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.advice.context.machine import MachineContext, Point
from monitor.advice.context.run import RunContext
from monitor.advice.docs import page
from monitor.advice.finding import make
from monitor.advice.judging import judge_run
from monitor.advice.rule import PARTS, all_rules
from monitor.model.finding import Finding
from monitor.model.policy import DEFAULT_POLICY
from monitor.model.snapshot import Snapshot
from tests.unit.advice import cases_loop, cases_machine
from tests.unit.advice.build import (
    GIB,
    NOW,
    snapshot_of,
)
from tests.unit.advice.shapes import HEALTHY

CASES = cases_loop.CASES | cases_machine.CASES


def findings_of(snapshot: Snapshot, id: str) -> list[Finding]:
    """What one rule says, without the others."""
    rule = next(rule for rule in all_rules() if rule.id == id)
    if rule.scope == "machine":
        idle = {gpu.uuid: NOW - 3600 for gpu in snapshot.gpus if gpu.processes}
        machine = MachineContext(snapshot, DEFAULT_POLICY, idle)
        made = [make(rule, advice, DEFAULT_POLICY, None, None) for advice in rule.check(machine)]
        return [finding for finding in made if finding is not None]
    found: list[Finding] = []
    for run in snapshot.runs:
        context = RunContext(snapshot, run, DEFAULT_POLICY)
        if rule.scope == "closing":
            found += [one.finding for one in judge_run(context) if one.finding.id == id]
            continue
        advice = rule.check(context) if not rule.steps or context.reliable else None
        one = make(rule, advice, DEFAULT_POLICY, context.model, run.id) if advice else None
        found += [one] if one else []
    return found


def test_every_rule_has_a_case() -> None:
    assert sorted(CASES) == [rule.id for rule in all_rules()]


@pytest.mark.parametrize("id", sorted(CASES))
def test_fires_on_its_cause(id: str) -> None:
    found = findings_of(CASES[id][0], id)
    assert found, f"{id} said nothing"
    finding = found[0]
    assert finding.title and finding.why and finding.remedy.summary and finding.evidence
    if finding.speedup is not None:
        assert 1.0 <= finding.speedup.low <= finding.speedup.likely <= finding.speedup.high


@pytest.mark.parametrize("id", sorted(CASES))
def test_is_silent_without_it(id: str) -> None:
    assert findings_of(CASES[id][1], id) == []


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_is_documented(rule: Any) -> None:
    assert all(rule.doc.get(part) for part in ("What", *PARTS)), f"{rule.id} misses a part of its docstring"


def test_the_page_of_rules_is_fresh() -> None:
    written = (Path(__file__).parents[3] / "docs" / "rules.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m monitor.advice.docs > docs/rules.md"


def test_leak_is_seen_in_the_history_too() -> None:
    points = tuple(Point(at * 50, GIB + at * (30 << 20), None) for at in range(12))
    rule = next(rule for rule in all_rules() if rule.id == "memory.leak")
    assert rule.check(RunContext(snapshot_of(HEALTHY), HEALTHY, DEFAULT_POLICY, points)) is not None

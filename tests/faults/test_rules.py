"""A failing rule, or a run that triggers a bug of ours: everybody else's findings are still there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from monitor.advice import engine, judging
from monitor.advice.engine import Engine
from monitor.advice.rule import Rule, all_rules
from monitor.model.snapshot import Snapshot
from monitor.web.exposition import Writer
from monitor.web.families import FAMILIES
from monitor.web.families.base import Limits, Own, make_scene
from tests.unit.advice.build import snapshot_of
from tests.unit.advice.shapes import starved


def broken(*args: Any) -> Any:
    raise ZeroDivisionError("a mistake")


def found(made: Snapshot, run: str) -> list[str]:
    return [one.id for one in made.findings if one.run == run]


@pytest.fixture
def two_runs() -> Snapshot:
    return snapshot_of(*(msgspec.structs.replace(starved(0), id=id, state="ended") for id in ("a", "b")))


@pytest.mark.parametrize("rule", [one.id for one in all_rules()])
def test_a_failing_rule_costs_its_own_findings_only(
    rule: str, two_runs: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Engine().once(two_runs)
    rules: list[Rule] = [replace(one, check=broken) if one.id == rule else one for one in all_rules()]
    monkeypatch.setattr(judging, "all_rules", lambda: rules)
    made = Engine().once(two_runs)
    assert set(found(whole, "a")) - set(found(made, "a")) <= {rule} and found(made, "b") == found(made, "a")
    assert set(made.rule_errors) <= {rule}


def test_a_run_that_cannot_be_judged_costs_its_own_findings_only(
    two_runs: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = judging.judge_run
    monkeypatch.setattr(
        engine,
        "judge_run",
        lambda context, *rest: broken() if context.run.id == "a" else real(context, *rest),
    )
    judge = Engine()
    judge.once(two_runs)
    made = judge.once(two_runs)
    assert found(made, "a") == [] and "input.slow_getitem" in found(made, "b")
    assert made.rule_errors == {engine.RUN: 1}, "a run that is over is judged once"
    assert made.runs[1].verdict is not None


def test_what_failed_is_counted_in_the_metrics(two_runs: Snapshot) -> None:
    failed = msgspec.structs.replace(two_runs, rule_errors={"input.bound": 3})
    page = Writer(FAMILIES, openmetrics=False).render(make_scene(failed, Own(), Limits())).decode()
    assert 'gpumon_rule_errors_total{rule="input.bound"} 3' in page

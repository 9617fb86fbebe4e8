"""Never more than the evidence: what limits a prediction, for every rule."""

from __future__ import annotations

import re
from math import exp

import pytest

from monitor.advice.context.run import RunContext
from monitor.advice.engine import Engine
from monitor.advice.finding import make
from monitor.advice.judging import judge_run
from monitor.advice.prediction.gain import Bounds, Outcomes, doubts, predict, speedup
from monitor.advice.prediction.limit import most_gain, removed_share, share_of, within
from monitor.advice.prediction.step_model import Change, StepModel, saved
from monitor.advice.rule import Advice, all_rules
from monitor.model import facts
from monitor.model.finding import Finding, Speedup
from monitor.model.policy import DEFAULT_POLICY
from monitor.model.run import Run, Times
from monitor.model.snapshot import Snapshot
from tests.unit.advice.build import gpu_of, hot, piece, run_of, snapshot_of
from tests.unit.advice.limits import check_limits, check_union
from tests.unit.advice.test_rules import CASES, findings_of

STEP = StepModel(parts={"forward": 0.02, "log": 0.08})
ANY_RULE = next(rule for rule in all_rules() if rule.scope == "run")


@pytest.mark.parametrize("id", sorted(CASES))
@pytest.mark.parametrize("place", [0, 1])
def test_no_rule_promises_more_than_its_evidence_removes(id: str, place: int) -> None:
    for finding in findings_of(CASES[id][place], id):
        check_limits(finding)


@pytest.mark.parametrize("id", sorted(CASES))
def test_headline_list_and_combined_gain_agree(id: str) -> None:
    judged = facts.complete(Engine().once(CASES[id][0]))
    for run in judged.runs:
        if run.combined is not None:
            check_union(run, facts.findings_of(run, judged.findings))


def test_two_thirds_of_a_step_give_at_most_threefold() -> None:
    """GIVEN a line that takes 65 % of the step WHEN its remedy is predicted THEN the gain is at most 1 /
    0.35, and the range ends where the doubt about those 65 % does."""
    run = run_of(
        {"forward": 0.02, "backward": 0.015, "other": 0.068},
        config={
            "hotspots": [hot("other", "rows = expand(x)", 0.985)],
            "work": [piece("other", "rows = expand(x)", 0.985, needed="yes")],
        },
    )
    found = Engine().once(snapshot_of(run)).findings
    gains = [one.speedup for one in found if one.speedup is not None]
    assert gains and max(gain.likely for gain in gains) <= 2.9
    assert all(gain.high <= max(2.9, gain.likely * exp(doubts(gain.likely)[1])) + 0.1 for gain in gains)


def test_a_rules_own_optimism_ends_at_what_it_removes() -> None:
    sure = Bounds(low=0.9, likely=1.0, high=1.0).part_of(saved("log", 0.08, "log"))
    assert removed_share(STEP, sure) == pytest.approx(0.8)
    bold, plain = within(speedup(4.0, 7.0, 20.0, ""), 0.8), within(predict(STEP, sure, ""), 0.8)
    assert bold.likely == plain.likely == pytest.approx(5.0)
    assert 5.0 < plain.high <= bold.high == pytest.approx(5.0 * exp(doubts(5.0)[1]), abs=1e-3)
    assert within(speedup(1.2, 1.5, 20.0, ""), 0.8).high == pytest.approx(5.0), (
        "a doubt only about the likely"
    )


def made(advice: Advice) -> Speedup | None:
    finding = make(ANY_RULE, advice, DEFAULT_POLICY, STEP, "r")
    return finding.speedup if finding else None


def test_a_gain_without_a_share_of_the_time_is_no_promise() -> None:
    claim = speedup(1.5, 20.0, 30.0, "because")
    assert made(Advice(title="t", remedy="r", severity="warning", speedup=claim)) is None
    named = made(Advice(title="t", remedy="r", severity="warning", speedup=claim, share=0.5))
    assert named is not None and (named.low, named.likely) == (1.5, 2.0)
    assert named.high == pytest.approx(2.0 * exp(doubts(2.0)[1]), abs=1e-3)


def test_loading_has_to_fit_into_the_cores() -> None:
    """GIVEN 40 ms of work per batch on two cores WHEN the wait is removed THEN the work is still there."""
    full = StepModel(parts={"forward": 0.01}, wait=0.03, work=0.04, workers=2, cores=2.0)
    share = removed_share(full, Outcomes(saved("data", 0.03, "data")))
    assert most_gain(share) == pytest.approx(0.04 / 0.025)


def test_a_busy_device_stays_as_busy_whatever_the_host_saves() -> None:
    parts = {"forward": 0.002, "log": 0.008}
    free, busy = StepModel(parts=parts), StepModel(parts=parts, device_busy=0.8)
    less_log = Outcomes(saved("log", 0.008, "log"))
    assert most_gain(removed_share(free, less_log)) == pytest.approx(5.0)
    assert most_gain(removed_share(busy, less_log)) == pytest.approx(1.25)
    faster = Outcomes(Change(everything=0.5))
    assert most_gain(removed_share(busy, faster)) == pytest.approx(2.0), "clocks shorten the device's work"


def throttled(use: float) -> Snapshot:
    slow = gpu_of(throttle={"hw_slowdown": True}, sm_clock_hertz=0.3e9, utilization_ratio=use)
    return snapshot_of(gpus=(slow,))


def test_an_idle_card_promises_nothing() -> None:
    idle, busy = (Engine().once(throttled(use)).findings for use in (0.0, 0.9))
    assert idle and all(one.speedup is None for one in idle)
    assert any(one.speedup and one.speedup.likely > 1.5 for one in busy)


def test_a_cause_is_not_promised_what_its_neighbours_may_owe_to_noise() -> None:
    """GIVEN a median step far below the mean WHEN validation is named THEN the likely gain is that of its own
    share, and the neighbours only widen the range."""
    phases = {"forward": 0.006, "validate": 0.004}
    times = Times(count=100, mean=0.006, p50=0.004)
    run = run_of(phases, rank={"step": times})
    context = RunContext(snapshot_of(run), run, DEFAULT_POLICY)
    found = next(
        one.finding for one in judge_run(context) if one.finding.id == "compute.validation_too_often"
    )
    assert found.speedup is not None
    assert found.speedup.likely <= most_gain(0.4) < most_gain(0.5) < found.speedup.high


def test_the_share_a_sleep_is_shown_with_is_the_share_its_gain_is_computed_from() -> None:
    """GIVEN a loop that sleeps while it fetches its own data, and a little in forward WHEN it is judged THEN
    the share in the title, the evidence and the gain are of all of it."""
    phases = {"data": 0.02, "forward": 0.004, "backward": 0.006}
    lines = [
        hot("data", "time.sleep(pause)", 1.0, job="sleep", line=7),
        hot("forward", "time.sleep(0.004)", 0.5, job="sleep", line=9),
    ]
    found = slept(run_of(phases, config={"hotspots": lines}))
    assert found.title.startswith("The loop sleeps 22 ms a step (73 %), most of it at `time.sleep(pause)`")
    assert found.speedup is not None and found.speedup.likely == pytest.approx(30 / 8, rel=0.01)
    assert found.evidence["sleep_share"] == pytest.approx(22 / 30, rel=1e-3)


def test_what_samples_wait_for_is_not_what_the_loop_sleeps() -> None:
    """The loader's own sleep is the cause of rules about input: it is neither counted nor shown here."""
    phases = {"data": 0.02, "forward": 0.004, "backward": 0.006}
    lines = [hot("data", "time.sleep(pause)", 1.0, job="sleep", line=7, piece=["train.py", 30])]
    lines += [hot("forward", "time.sleep(0.004)", 1.0, job="sleep", line=9)]
    work = [piece("data", "for batch in loader:", 1.0, job="sleep", line=30)]
    loading = {"hotspots": lines, "work": work, "loader": {"num_workers": 0}}
    found = slept(run_of(phases, config=loading))
    assert "4 ms a step (13 %) at `time.sleep(0.004)`" in found.title
    assert found.speedup is not None and found.speedup.likely == pytest.approx(30 / 26, rel=0.01)


def slept(run: Run) -> Finding:
    return next(one for one in Engine().once(snapshot_of(run)).findings if one.id == "compute.sleep")


REMOVED = (
    "compute.sleep", "job.gc_pauses", "compute.checkpoint_stalls", "compute.metrics_every_step",
    "compute.logging_too_often", "compute.validation_too_often", "compute.constant_recomputed",
)  # fmt: skip
"""Rules whose remedy removes nearly all that they name."""


@pytest.mark.parametrize("id", REMOVED)
def test_what_a_removing_remedy_shows_and_what_it_promises_agree(id: str) -> None:
    [finding] = findings_of(CASES[id][0], id)
    shown = float(next(iter(re.findall(r"(\d+) %", finding.title)))) / 100
    assert finding.speedup is not None
    assert 0.9 * shown < share_of(finding.speedup.likely) < shown + 0.02

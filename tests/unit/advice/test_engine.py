"""What is shown and when: ranking, suppression, hysteresis, silence on healthy runs, the policy file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from monitor.advice.conclusion import Changes, combined_of
from monitor.advice.context.run import RunContext
from monitor.advice.engine import REST_TICKS, YOUNG, Engine
from monitor.advice.guard import Ask
from monitor.advice.judging import Errors, Judged, judge_run
from monitor.advice.prediction.step_model import StepModel
from monitor.model.errors import UserError
from monitor.model.finding import Finding, Speedup
from monitor.model.gpu import Pcie
from monitor.model.policy import DEFAULT_POLICY, load_policy
from monitor.model.run import Window
from monitor.model.snapshot import Snapshot
from monitor.model.verdict import Verdict
from monitor.report.report import make_report
from monitor.report.text import render
from tests.unit.advice.build import NOW, cuda_run, gpu_of, hot, loader, loader_config, run_of, snapshot_of
from tests.unit.advice.shapes import HEALTHY, LOADED, STARVED, starved


def ids(engine: Engine, snapshot: Snapshot) -> list[str]:
    return [finding.id for finding in engine.evaluate(snapshot).findings]


def settled(snapshot: Snapshot) -> list[str]:
    engine = Engine()
    ids(engine, snapshot)
    return ids(engine, snapshot)


def test_a_healthy_run_gets_one_good_word_and_no_warning() -> None:
    assert settled(snapshot_of(HEALTHY)) == ["healthy.ok"]


def test_the_specific_cause_comes_first_and_the_general_one_not_at_all() -> None:
    found = settled(snapshot_of(starved(0)))
    assert found[0] == "input.slow_getitem"
    assert "input.bound" not in found and "healthy.ok" not in found


def test_random_samples_ask_for_workers_instead_of_a_cache() -> None:
    drawn = hot("data", "x = x + noise(9)", function="Rows.__getitem__", random=True)
    assert settled(snapshot_of(starved(0, [drawn])))[0] == "input.no_workers"


def test_a_finding_is_confirmed_before_it_is_shown_and_kept_for_a_while() -> None:
    engine, sick, well = Engine(), snapshot_of(starved(0)), snapshot_of(HEALTHY)
    assert ids(engine, sick) == []
    assert "input.slow_getitem" in ids(engine, sick)
    shown = [("input.slow_getitem" in ids(engine, well)) for _ in range(DEFAULT_POLICY.clear_ticks)]
    assert shown == [True] * (DEFAULT_POLICY.clear_ticks - 1) + [False]


def test_a_run_that_is_over_needs_no_confirmation() -> None:
    over = snapshot_of(msgspec.structs.replace(starved(0), state="ended"))
    assert "input.slow_getitem" in ids(Engine(), over)


def test_since_is_when_it_was_first_seen() -> None:
    engine = Engine()
    engine.evaluate(snapshot_of(starved(0), time=100.0))
    later = engine.evaluate(snapshot_of(starved(0), time=107.0))
    assert {finding.since for finding in later.findings} == {100.0}


def test_once_needs_no_confirmation_and_leaves_none_behind() -> None:
    engine, snapshot = Engine(), snapshot_of(starved(0), time=100.0)
    found = engine.once(snapshot)
    assert found.findings[0].id == "input.slow_getitem" and found.findings[0].since == 100.0
    assert found.runs[0].verdict is not None and found.runs[0].verdict.kind == "fix"
    assert ids(engine, snapshot) == [], "a later tick still confirms"


def test_no_verdict_when_too_much_was_lost() -> None:
    lossy = run_of(STARVED, rank={"lost": 200, "loader": loader(**LOADED)}, config=loader_config(0))
    assert settled(snapshot_of(lossy)) == ["job.data_lost"]


def test_no_verdict_on_a_handful_of_steps() -> None:
    few = msgspec.structs.replace(HEALTHY.ranks[0].step, count=3)
    young = run_of(STARVED, rank={"step": few, "whole": few})
    assert settled(snapshot_of(young)) == []


def test_gpu_remedies_stay_away_from_cpu_runs() -> None:
    config = {"precision": {"autocast": False, "matmul_tf32": False}, "cudnn": {"benchmark": False}}
    assert settled(snapshot_of(run_of(config=config))) == ["healthy.ok"]


def test_a_default_adam_on_a_healthy_run_is_a_hint_and_nothing_says_that_all_is_well() -> None:
    phases = {"data": 0.0003, "forward": 0.002, "backward": 0.003, "optimizer": 0.0015}
    config = {"optimizer": {"class": "Adam", "kind": "Adam", "fused": None, "foreach": None}}
    assert settled(snapshot_of(run_of(phases, config=config))) == ["compute.optimizer_unfused"]
    judged = Engine().once(snapshot_of(run_of(phases, config=config))).runs[0].verdict
    assert judged is not None and judged.kind == "hint" and judged.gain is not None
    assert judged.text().startswith("Nothing serious, but: Optimizer update takes 22 %")


def test_remedies_of_different_seconds_gain_more_than_the_best_one() -> None:
    both = run_of(
        STARVED | {"checkpoint": 0.01},
        config=loader_config(0) | {"hotspots": []},
        rank={"loader": loader(**LOADED)},
    )
    judged = Engine().once(snapshot_of(both))
    gains = likely_gains(judged.findings)
    together = judged.runs[0].combined
    assert together is not None and len(gains) >= 2
    assert max(gains) < together.likely


def test_the_combined_gain_follows_the_findings_that_are_shown() -> None:
    """GIVEN gains unknown to the step model WHEN combined THEN the total is at least the best one."""
    slow = gpu_of(throttle={"sw_thermal_slowdown": True}, sm_clock_hertz=0.7e9)
    slower = [Window(NOW + at, 1.0, at, 10, step_p50=0.01 * (1 + at / 8), phases={"other": at / 20})
              for at in range(16)]  # fmt: skip
    run = cuda_run(timeline=tuple(slower), rank={"rank": 0})
    judged = Engine().once(snapshot_of(run, gpus=(slow,)))
    assert {"trend.decay", "device.thermal_throttle"} <= {finding.id for finding in judged.findings}
    together = judged.runs[0].combined
    assert together is not None and together.likely == max(likely_gains(judged.findings))


def likely_gains(findings: Sequence[Finding]) -> list[float]:
    return [one.speedup.likely for one in findings if one.speedup and one.severity == "warning"]


def test_the_verdict_names_the_cause_the_line_and_the_gain() -> None:
    run = msgspec.structs.replace(starved(0), state="ended")
    report = make_report(Engine().evaluate(snapshot_of(run)), "r", 0)
    assert "scaler.transform" in report.verdict and "train.py:7" in report.verdict and "×" in report.verdict
    page = "\n".join(render(report, 80))
    assert "data" in page and "█" in page and "predicted ×" in page and "once for all" in page
    written = report.as_json()
    assert {"id", "severity", "run", "title", "evidence", "remedy", "speedup", "since"} <= set(
        written["findings"][0]
    )


def test_the_head_names_the_framework_and_both_rates() -> None:
    rates = {"iterations_per_second": 2.5, "micro_batches": 4.0, "micro_batches_per_second": 10.0}
    run = msgspec.structs.replace(HEALTHY, state="ended", framework="transformers", **rates)
    head = next(iter(render(make_report(snapshot_of(run), "r", 0), 100)))
    assert "by transformers" in head and "2.50 steps/s, 10 micro-batches/s" in head


def test_further_trainings_of_a_command_come_behind_the_longest() -> None:
    longest = msgspec.structs.replace(HEALTHY, state="ended", id="r-2")
    short = msgspec.structs.replace(HEALTHY, state="ended", steps=7, started=HEALTHY.started - 60)
    other = msgspec.structs.replace(HEALTHY, state="ended", id="r-x")
    report = make_report(snapshot_of(longest, short, other), "r", 0)
    assert report.run is not None and report.run.id == "r-2"
    assert [one.run_id for one in report.others] == ["r"]
    assert [one["steps"] for one in report.as_json()["other_trainings"]] == [7]
    assert "gpumon report r" in "\n".join(render(report, 80)).splitlines()[-1]


def test_a_command_that_never_trains_gets_a_sentence() -> None:
    report = make_report(snapshot_of(), "r", 3)
    assert "No training was seen" in report.verdict and "exit code 3" in report.verdict
    assert not report.as_json()["findings"] and len(list(render(report, 80))) >= 2


def test_the_verdict_of_a_healthy_run() -> None:
    run = msgspec.structs.replace(HEALTHY, state="ended")
    report = make_report(Engine().evaluate(snapshot_of(run)), "r", 0)
    assert "checks, none fired; 89 % of the time is forward and backward, 0 % unexplained" in report.verdict
    assert "The next limit is" in report.verdict and "Nothing to change" not in report.verdict
    assert "most of the rest" not in report.verdict, "there is little rest"


def test_a_run_without_a_cause_says_what_most_of_the_rest_is() -> None:
    phases = {"forward": 0.004, "backward": 0.005, "optimizer": 0.0008, "validate": 0.00115}
    found = Engine().evaluate(snapshot_of(run_of(phases, state="ended"))).findings[0]
    assert found.id == "healthy.ok" and found.title.endswith("; most of the rest is validation, 11 %")


def test_a_run_too_short_for_a_verdict_says_so() -> None:
    few = msgspec.structs.replace(HEALTHY.ranks[0].step, count=3)
    judged = Engine().once(snapshot_of(run_of(STARVED, rank={"step": few, "whole": few})))
    assert judged.runs[0].combined is None
    assert judged.runs[0].verdict == Verdict("unknown", steps=420)


def test_a_run_that_is_over_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []

    def counting(context: RunContext, beside: Sequence[Finding], ask: Ask, errors: Errors) -> list[Judged]:
        judged.append(context.run.id)
        return judge_run(context, beside, ask, errors)

    monkeypatch.setattr("monitor.advice.engine.judge_run", counting)
    over = msgspec.structs.replace(starved(0), id="over", state="ended")
    engine, snapshot = Engine(), snapshot_of(over, HEALTHY)
    first = [engine.evaluate(snapshot) for _ in range(5)]
    assert judged.count("over") == 1 and judged.count(HEALTHY.id) == 5
    assert first[0].runs[0].combined == first[4].runs[0].combined is not None


def test_a_policy_file_overrides_a_threshold(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text("[policy]\nwarning_gain = 5.0\n")
    policy = load_policy(file)
    assert policy.warning_gain == 5.0 and policy.memory_high == DEFAULT_POLICY.memory_high


@pytest.mark.parametrize(
    "content", ["[policy]\nnonsense = 1\n", "[policy]\nmemory_high = 'x'\n", "[policy\n"]
)
def test_a_broken_policy_file_is_one_clear_sentence(tmp_path: Path, content: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(content)
    with pytest.raises(UserError):
        load_policy(file)


def test_a_run_watched_for_long_is_evaluated_now_and_then_and_its_findings_stay() -> None:
    """GIVEN a run that was evaluated often WHEN it goes on as before THEN it rests in between, and its
    findings stay visible meanwhile; a change of its state is evaluated in that very tick."""
    engine, sick = Engine(), snapshot_of(starved(0))
    for _ in range(YOUNG):
        engine.evaluate(sick)
    shown = [ids(engine, sick) for _ in range(3 * (REST_TICKS + 1))]
    assert all("input.slow_getitem" in found for found in shown)
    (kept,) = engine._runs.values()
    assert kept.evaluations == YOUNG + 3
    engine.evaluate(snapshot_of(msgspec.structs.replace(starved(0), state="stalled")))
    assert kept.evaluations == YOUNG + 4


def test_a_run_nobody_looks_at_rests_early_and_its_end_is_evaluated_at_once() -> None:
    """GIVEN an engine told that a run may rest after three evaluations WHEN it goes on as before, and ends
    with another cause THEN it rests from the fourth tick on, and what is shown then is what its end says."""
    engine, sick = Engine(young=3), snapshot_of(starved(0))
    shown = [ids(engine, sick) for _ in range(3 + 2 * (REST_TICKS + 1))]
    assert all("input.slow_getitem" in found for found in shown[2:])
    (kept,) = engine._runs.values()
    assert kept.evaluations == 3 + 2
    ended = msgspec.structs.replace(starved(8), state="completed")
    assert ids(engine, snapshot_of(ended)) == ids(Engine(), snapshot_of(ended))
    assert kept.evaluations == 3 + 3


def test_resting_ticks_do_not_count_as_evaluations() -> None:
    """GIVEN a resting run WHEN its cause goes away, through a change of settings that is evaluated at once
    THEN its finding goes after as many evaluations as ever."""
    engine, sick, well = Engine(), snapshot_of(starved(0)), snapshot_of(HEALTHY)
    assert sick.runs[0].id == well.runs[0].id
    for _ in range(YOUNG):
        engine.evaluate(sick)
    ticks = 0
    while "input.slow_getitem" in ids(engine, well):
        ticks += 1
    assert ticks == (DEFAULT_POLICY.clear_ticks - 1) * (REST_TICKS + 1)


def test_a_machine_watched_for_long_is_evaluated_now_and_then() -> None:
    """GIVEN a machine that was evaluated often WHEN it goes on as before THEN it rests in between; a new
    finding is confirmed as fast as ever once it was seen, and a lost GPU is told in that very tick."""
    well, lost = gpu_of(), msgspec.structs.replace(gpu_of(), state="lost")
    link = Pcie(generation=4, generation_max=4, width=8, width_max=16)
    narrow, engine = msgspec.structs.replace(well, pcie=link), Engine()
    for _ in range(YOUNG):
        engine.evaluate(snapshot_of(gpus=(well,)))
    for _ in range(3 * (REST_TICKS + 1)):
        engine.evaluate(snapshot_of(gpus=(well,)))
    assert engine._machine.evaluations == YOUNG + 3
    ticks = [
        ids(engine, snapshot_of(gpus=(narrow,))) for _ in range(REST_TICKS + 1 + DEFAULT_POLICY.confirm_ticks)
    ]
    assert not ticks[0] and ticks[-1] == ["transfer.pcie_degraded"]
    assert "device.lost" in ids(engine, snapshot_of(gpus=(lost,)))


def test_a_run_that_is_over_is_concluded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    concluded: list[int] = []

    def counted(findings: Sequence[Finding], changes: Changes, model: StepModel | None) -> Speedup | None:
        concluded.append(len(findings))
        return combined_of(findings, changes, model)

    monkeypatch.setattr("monitor.advice.engine.combined_of", counted)
    engine, over = Engine(), snapshot_of(msgspec.structs.replace(starved(0), state="ended", live=False))
    first, *others = [engine.evaluate(over) for _ in range(5)]
    assert len(concluded) == 1 and first.runs[0].combined is not None
    assert {one.runs == first.runs for one in others} == {True}

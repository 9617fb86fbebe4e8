"""What is shown and when: ranking, suppression, hysteresis, silence on healthy runs, the policy file."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import msgspec
import pytest

from monitor.advice.combined import combined_speedup
from monitor.advice.engine import Engine
from monitor.advice.policy import DEFAULT_POLICY, load_policy
from monitor.errors import UserError
from monitor.snapshot import Snapshot
from monitor.summary import make_report, verdict
from monitor.summary_text import render
from tests.unit.advice.build import hot, loader, loader_config, run_of, snapshot_of
from tests.unit.advice.shapes import HEALTHY, LOADED, STARVED, starved


def ids(engine: Engine, snapshot: Snapshot) -> list[str]:
    return [finding.id for finding in engine.evaluate(snapshot)]


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
    drawn = hot("data", "x = x + np.random.normal(size=9)", function="Rows.__getitem__")
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
    assert {finding.since for finding in later} == {100.0}


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


def test_a_default_adam_on_a_healthy_run_is_a_hint_behind_the_good_word() -> None:
    phases = {"data": 0.0003, "forward": 0.002, "backward": 0.003, "optimizer": 0.0015}
    config = {"optimizer": {"class": "Adam", "fused": None, "foreach": None}}
    assert settled(snapshot_of(run_of(phases, config=config))) == ["healthy.ok", "compute.optimizer_unfused"]


def test_remedies_together_gain_more_than_the_best_but_not_their_product() -> None:
    both = run_of(
        STARVED | {"checkpoint": 0.01},
        config=loader_config(0) | {"hotspots": []},
        rank={"loader": loader(**LOADED)},
    )
    snapshot = snapshot_of(both)
    engine = Engine()
    engine.evaluate(snapshot)
    found = engine.evaluate(snapshot)
    gains = [finding.speedup.likely for finding in found if finding.speedup and finding.severity == "warning"]
    together = combined_speedup(snapshot, both, found)
    assert together is not None and len(gains) >= 2
    assert max(gains) < together.likely


def test_the_verdict_names_the_cause_the_line_and_the_gain() -> None:
    run = msgspec.structs.replace(starved(0), state="ended")
    snapshot = msgspec.structs.replace(snapshot_of(run), findings=Engine().evaluate(snapshot_of(run)))
    report = make_report(snapshot, "r", 0)
    assert "scaler.transform" in report.verdict and "train.py:7" in report.verdict and "×" in report.verdict
    page = "\n".join(render(report, 80))
    assert "data" in page and "█" in page and "predicted ×" in page and "self.ready" in page
    written = report.as_json()
    assert {"id", "severity", "run", "title", "evidence", "remedy", "speedup", "since"} <= set(
        written["findings"][0]
    )


def test_a_command_that_never_trains_gets_a_sentence() -> None:
    report = make_report(snapshot_of(), "r", 3)
    assert "No training was seen" in report.verdict and "exit code 3" in report.verdict
    assert not report.as_json()["findings"] and len(list(render(report, 80))) >= 2


def test_the_verdict_of_a_healthy_run() -> None:
    run = msgspec.structs.replace(HEALTHY, state="ended")
    assert verdict(run, Engine().evaluate(snapshot_of(run)), None).startswith("Healthy")


def test_evaluating_is_cheap() -> None:
    engine, snapshot = Engine(), snapshot_of(starved(0), HEALTHY)
    best = min(_timed(engine, snapshot) for _ in range(60))
    assert best < 0.004


def _timed(engine: Engine, snapshot: Snapshot) -> float:
    begin = perf_counter()
    engine.evaluate(snapshot)
    return perf_counter() - begin


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

"""Prices of a machine: kept in a file, ignored if broken, and how predictions use them."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import sdk
from monitor.advice.engine import Engine
from monitor.advice.prediction.gain import BORROWED_DOUBT, Outcomes, predict, widened
from monitor.advice.prediction.step_model import Change, StepModel, saved
from monitor.calibration import cache, measure
from monitor.calibration.prices import REFERENCE, Calibration, Prices, calibrated, is_sane
from monitor.model.finding import Speedup
from monitor.model.policy import DEFAULT_POLICY, Policy
from monitor.model.run import Run
from monitor.model.settings import load as load_settings
from monitor.pipeline.pipeline import Pipeline
from tests.unit.advice.build import loader, loader_config, run_of, snapshot_of
from tests.unit.advice.shapes import LOADED, STARVED

SLOWER = msgspec.structs.replace(REFERENCE, op_seconds_cpu=2 * REFERENCE.op_seconds_cpu)


def made(prices: Prices = REFERENCE, machine: str = "4 × Some CPU @ 2 GHz") -> Calibration:
    return Calibration(machine, 1_750_000_000.0, prices)


def test_a_machine_is_kept_in_a_file_of_its_own(tmp_path: Path) -> None:
    here, other = made(SLOWER), made(machine="8 × Another")
    assert cache.save(here, tmp_path) != cache.save(other, tmp_path)
    assert cache.load(here.machine, tmp_path) == here
    assert cache.load("2 × Unknown", tmp_path) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"machine": 1}', '{"machine": "4 × Some CPU @ 2 GHz", "time": 0, "prices": {}}']
)
def test_a_broken_file_is_ignored(tmp_path: Path, text: str) -> None:
    path = cache.save(made(), tmp_path)
    path.write_text(text, encoding="utf-8")
    assert cache.load(made().machine, tmp_path) is None


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, 1.0])
def test_figures_that_make_no_sense_are_ignored(tmp_path: Path, value: float) -> None:
    broken = msgspec.structs.replace(REFERENCE, op_seconds_cpu=value)
    assert not is_sane(broken)
    if value == value:
        cache.save(made(broken), tmp_path)
        assert cache.load(made().machine, tmp_path) is None


def test_a_file_of_another_machine_is_ignored(tmp_path: Path) -> None:
    """GIVEN a home directory shared by two machines WHEN their file names are equal THEN the kind decides."""
    path = cache.save(made(), tmp_path)
    path.write_bytes(msgspec.json.encode(made(machine="4 × Some-CPU @ 2 GHz")))
    assert cache.load(made().machine, tmp_path) is None


def test_prices_follow_the_measurement_and_a_sites_own_stay() -> None:
    found = calibrated(DEFAULT_POLICY, SLOWER)
    assert found.op_seconds_cpu == pytest.approx(2 * DEFAULT_POLICY.op_seconds_cpu)
    assert found.worker_start_seconds == DEFAULT_POLICY.worker_start_seconds and found.prices_measured
    site = dataclasses.replace(DEFAULT_POLICY, op_seconds_cpu=5e-6)
    assert calibrated(site, SLOWER).op_seconds_cpu == 5e-6
    assert dataclasses.replace(calibrated(DEFAULT_POLICY, REFERENCE), prices_measured=False) == DEFAULT_POLICY


def test_the_kind_of_machine_is_its_cores_and_their_name(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor: 0\nmodel name\t: Some   CPU\n\nmodel name\t: Some   CPU\n")
    assert cache.machine_kind(tmp_path).endswith("× Some CPU")
    assert cache.machine_kind(tmp_path / "nowhere").endswith("× unknown CPU")


# ── Predictions ──


def gain(policy: Policy) -> Speedup:
    run = run_of(STARVED, config=loader_config(0), rank={"loader": loader(**LOADED)})
    found = Engine(policy).once(snapshot_of(run)).findings
    return next(one.speedup for one in found if one.id == "input.no_workers" and one.speedup)


def test_a_machine_whose_workers_cost_more_gains_less_by_them() -> None:
    slow = msgspec.structs.replace(REFERENCE, worker_batch_seconds=6 * REFERENCE.worker_batch_seconds)
    assert gain(calibrated(DEFAULT_POLICY, slow)).likely < gain(calibrated(DEFAULT_POLICY, REFERENCE)).likely


def test_borrowed_prices_make_wider_ranges_only_where_prices_count() -> None:
    step = StepModel(parts={"forward": 0.01, "log": 0.01}, wait=0.02, work=0.02, cores=8.0)
    borrowed = dataclasses.replace(step, borrowed_prices=True)
    workers, less_log = Outcomes(Change(workers=4)), Outcomes(saved("log", 0.01, "log"))
    assert width(predict(borrowed, workers, "")) > width(predict(step, workers, ""))
    assert width(predict(borrowed, workers, "")) > BORROWED_DOUBT
    assert predict(borrowed, less_log, "") == predict(step, less_log, "")


def width(one: Speedup) -> float:
    return math.log(one.high / one.low)


def test_a_rule_that_was_wrong_before_has_a_range_as_wide() -> None:
    said = Speedup(1.45, 1.5, 1.55)
    assert widened(said, None) == said == widened(said, 0.01)
    doubtful = widened(said, 0.3)
    assert doubtful.low == pytest.approx(1.154, abs=1e-3) and doubtful.high == pytest.approx(1.95)
    run = run_of({"forward": 0.003, "backward": 0.005, "log": 0.006}, config={"cpu_model": "Some CPU"})
    plain, wrong, very_wrong = (_gain_after(run, error) for error in (None, 0.5, 5.0))
    assert plain.likely == wrong.likely and wrong.low < plain.low
    assert plain.high <= wrong.high == very_wrong.high, "never more than the evidence"


def _gain_after(run: Run, error: float | None) -> Speedup:
    """What is predicted where the rule was so wrong before."""
    engine = Engine()
    engine.errors = {run.host_kind: {"compute.logging_too_often": error}} if error else {}
    found = engine.once(snapshot_of(run)).findings[0].speedup
    assert found is not None
    return found


# ── Measuring ──


def test_a_pipeline_uses_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    cache.save(Calibration(cache.machine_kind(), 0.0, SLOWER))
    pipeline = Pipeline(load_settings())
    try:
        assert pipeline.policy.prices_measured
    finally:
        pipeline.close()


def test_a_busy_machine_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "busy_share", lambda: 1.0)
    with pytest.raises(measure.NotMeasured, match="busy"):
        measure.measure()


@pytest.mark.parametrize(
    ("code", "said"), [("import nothing_like_it", "nothing_like_it"), ("print('{}')", "unexpected answer")]
)
def test_an_interpreter_that_cannot_measure_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    """GIVEN an interpreter without torch, or one that answers something else THEN there are no prices."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}"\n')
    python.chmod(0o755)
    monkeypatch.setattr(measure, "busy_share", lambda: 0.0)
    with pytest.raises(measure.NotMeasured, match=said):
        measure.measure(str(python))
    with pytest.raises(measure.NotMeasured, match="did not answer"):
        measure.measure(str(tmp_path / "nowhere"))


@pytest.mark.slow
def test_the_measurement_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(measure, "busy_share", lambda: 0.0)
    monkeypatch.setattr(measure, "is_sane", lambda prices: True)  # a loaded machine may be slow
    found = measure.measure()
    assert found.machine == cache.machine_kind()
    assert all(value > 0 for name, value in msgspec.structs.asdict(found.prices).items() if name != "torch")


def test_measuring_needs_nothing_of_ours(tmp_path: Path) -> None:
    """The interpreter that trains may have no gpumon, so the script must work on its own."""
    script = Path(sdk.__file__).parent / "calibrate.py"
    code = f"import runpy, sys; runpy.run_path({str(script)!r}, run_name='x'); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert "'sdk'" not in done.stdout and "'torch'" not in done.stdout

"""The step model: what a remedy leaves, what that wins back, and how much is in doubt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import COLD_SECONDS, Bounds, in_range, predict, ratio
from monitor.advice.prediction.step_model import Change, Saving, StepModel
from monitor.model.policy import DEFAULT_POLICY
from monitor.model.run import Times
from tests.unit.advice.build import loader_config, run_of, snapshot_of


def gone(seconds: float, part: str = "other") -> Change:
    return Change(savings=(Saving(part, seconds, "cause"),))


def test_a_short_rest_gets_its_caches_back_a_long_one_hardly_notices() -> None:
    short = StepModel(parts={"other": 0.02, "backward": 0.0003, "optimizer": 0.0002})
    long = StepModel(parts={"other": 0.02, "backward": 0.03, "optimizer": 0.02})
    bare = 0.0205 / 0.0005
    assert 1.2 * bare < ratio(short, gone(0.02)) < 1.9 * bare
    assert ratio(long, gone(0.02)) == pytest.approx(0.07 / 0.05, rel=0.01)


def test_what_goes_in_a_wink_leaves_no_cold_caches_behind() -> None:
    model = StepModel(parts={"other": 0.0001, "backward": 0.001})
    after = model.period / ratio(model, gone(0.0001))
    assert 0.001 - 0.05 * COLD_SECONDS < after <= 0.001


def test_the_first_batch_of_a_short_epoch_is_waited_for_in_full() -> None:
    model = StepModel(
        parts={"forward": 0.004},
        wait=0.05,
        work=0.05,
        work_cpu=0.05,
        cores=2.0,
        handover=0.0,
        epoch_steps=20.0,
    )
    with_eight = model.apply(Change(workers=8)).period
    assert with_eight == pytest.approx(0.05 / 8 + (0.05 - 0.05 / 8) / 20)


def test_work_costs_more_in_a_worker_and_less_in_the_loop() -> None:
    loop = StepModel(
        parts={"forward": 0.001}, wait=0.01, work=0.01, cores=8.0, worker_slowdown=1.1, worker_seconds=0.001
    )
    assert loop.apply(Change(workers=1)).work == pytest.approx(0.012)
    crowd = StepModel(parts={"forward": 0.001}, wait=0.005, work=0.001, workers=8, cores=2.0)
    assert crowd.apply(Change(workers=0, work_left=0.5)).period == pytest.approx(0.0015)


def test_a_larger_batch_pays_the_fixed_part_once() -> None:
    model = StepModel(parts={"forward": 0.001, "optimizer": 0.0005}, wait=0.0005)
    change = Change(batch=8.0, fixed={"forward": 0.0009, "optimizer": 0.0005, "data": 0.0004})
    assert ratio(model, change) == pytest.approx(8 * 0.002 / (0.0017 + 0.0005 + 0.0012))


gains = st.floats(1.0, 500.0)


@given(gains, gains, gains)
def test_a_range_is_in_order_and_finite(likely: float, least: float, most: float) -> None:
    given_range = in_range(likely, least, most, "")
    assert 1.0 <= given_range.low <= given_range.likely <= given_range.high <= 1000.0


@given(st.floats(1.1, 30.0))
def test_without_doubt_of_its_own_a_rule_promises_a_range_that_helps(likely: float) -> None:
    sure = in_range(likely, likely, likely, "")
    assert 1.0 < sure.low < likely < sure.high
    assert sure.high / sure.low < 3.0


def test_the_more_goes_the_wider_the_range() -> None:
    model = StepModel(parts={"other": 0.1})
    widths = []
    for share in (0.1, 0.5, 0.9):
        speedup = predict(model, Bounds(1.0, 1.0, 1.0).part_of(gone(0.1 * share)), "")
        widths.append(speedup.high / speedup.low)
    assert widths == sorted(widths) and widths[-1] < 2.3


def context(median: float, **phases: float) -> RunContext:
    run = run_of(phases, config=loader_config(0), rank={"step": Times(count=100, mean=0.01, p50=median)})
    return RunContext(snapshot_of(run), run, DEFAULT_POLICY)


def test_the_median_step_shows_what_a_rare_cause_costs_its_neighbours() -> None:
    assert context(0.004, forward=0.006, validate=0.004).cost_with_neighbours(0.004) == pytest.approx(0.00592)
    assert context(0.0099, forward=0.006, log=0.004).cost_with_neighbours(0.004) == 0.004


def test_a_rare_cause_is_not_blamed_for_everything_uneven() -> None:
    assert context(0.001, forward=0.006, validate=0.004).cost_with_neighbours(0.002) == pytest.approx(0.0032)


def test_the_length_of_an_epoch_comes_from_the_data_or_from_the_starts() -> None:
    counted = run_of({"forward": 0.01}, steps=200, config=loader_config(2, dataset_len=640))
    assert RunContext(snapshot_of(counted), counted, DEFAULT_POLICY).epoch_steps == 20
    started = run_of({"forward": 0.01}, steps=200, config={"loader": {"epochs_started": 4}})
    assert RunContext(snapshot_of(started), started, DEFAULT_POLICY).epoch_steps == 50

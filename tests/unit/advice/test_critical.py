"""Of a run that was probed: what is hidden promises nothing, and a slope bounds what is promised."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from monitor.advice.engine import Engine
from monitor.advice.prediction.critical import critical_share, probed
from monitor.advice.prediction.step_model import Change, StepModel, combine, saved
from monitor.model.criticality import Criticality
from monitor.model.run import Run
from tests.unit.advice.build import hot, piece, run_of, snapshot_of

STEP = StepModel(parts={"forward": 0.02, "log": 0.08})
HIDDEN = {"data": 0.0, "backward": 0.0, "optimizer": 0.0}


def place(name: str, slope: float, error: float = 0.03) -> Criticality:
    return Criticality(name, 200, 0.3, slope=slope, error=error, margin=2 * error)


def run_with_work() -> Run:
    """Two thirds of the step are a line of the loop that a remedy is known for."""
    return run_of(
        {"forward": 0.02, "backward": 0.015, "other": 0.068},
        config={
            "hotspots": [hot("other", "rows = expand(x)", 0.985)],
            "work": [piece("other", "rows = expand(x)", 0.985, needed="yes")],
        },
    )


def most_promised(run: Run) -> float:
    found = Engine().once(snapshot_of(run)).findings
    return max((one.speedup.likely for one in found if one.speedup is not None), default=1.0)


def test_a_hidden_place_promises_nothing() -> None:
    run = run_with_work()
    assert most_promised(run) > 2.0
    hidden = replace(run, criticality=tuple(place(name, 0.02) for name in HIDDEN))
    assert most_promised(hidden) == 1.0


def test_what_is_not_clear_bounds_nothing() -> None:
    run = run_with_work()
    doubtful = replace(run, criticality=tuple(place(name, 0.02, error=0.3) for name in HIDDEN))
    assert most_promised(doubtful) == most_promised(run)


def test_a_critical_place_bounds_nothing() -> None:
    run = run_with_work()
    critical = replace(run, criticality=tuple(place(name, 1.0) for name in HIDDEN))
    assert most_promised(critical) == most_promised(run)


def test_ranks_that_wait_for_one_another_are_all_changed_by_a_remedy() -> None:
    run = replace(run_with_work(), world_size=2, criticality=(place("optimizer", 0.0),))
    assert probed(run) == {}


def test_a_slope_bounds_the_share_that_can_go() -> None:
    log, places = saved("log", 0.08, "log"), {"backward": 1.0, "optimizer": 0.25}
    assert critical_share(STEP, log, places) == pytest.approx(0.2)
    both = combine([log, saved("forward", 0.01, "slow")])
    assert critical_share(STEP, both, places) == pytest.approx(0.3)
    assert critical_share(STEP, log, {"log": 0.5, "optimizer": 0.0}) == pytest.approx(0.4), "its own place"
    assert critical_share(STEP, log, {}) == 1.0
    assert critical_share(STEP, log, {"data": 0.0}) == pytest.approx(0.8), "nothing is known about this one"


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (StepModel(parts={"forward": 0.02}, wait=0.08, work=0.2, workers=2), Change(workers=4)),
        (StepModel(parts={"forward": 0.1}, device_busy=0.9), saved("forward", 0.05, "compute")),
        (STEP, Change(batch=8.0)),
    ],
)
def test_delays_of_the_loop_say_nothing_about_loader_processes_and_devices(
    model: StepModel, change: Change
) -> None:
    assert critical_share(model, change, HIDDEN) == 1.0


def test_without_workers_loading_is_the_loops_own_time() -> None:
    model = StepModel(parts={"forward": 0.02}, wait=0.08, work=0.08)
    assert critical_share(model, Change(workers=4), HIDDEN) == 0.0
    assert critical_share(model, Change(workers=4), {"data": 1.0}) == pytest.approx(0.8)

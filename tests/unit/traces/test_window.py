"""Which work counts."""

from __future__ import annotations

import pytest

from monitor.model.errors import UserError
from monitor.traces import analyse
from tests.unit.traces.maker import Maker


def three_steps() -> Maker:
    maker = Maker()
    for number in range(3):
        maker.step(number + 4, number * 100, 100)
        maker.launch(number * 100 + 10, number * 100 + 20, 50)
    return maker


def test_the_last_of_several_steps_is_left_out() -> None:
    report = analyse(three_steps().trace())
    assert (report.window.work, report.window.left_out) == (2, 1)
    assert report.window.seconds == pytest.approx(150e-6)
    steps = report.steps
    assert steps is not None
    assert (steps.first, steps.last, steps.count, steps.in_window) == (4, 6, 3, 2)
    assert steps.mean_seconds == pytest.approx(100e-6)


def test_unless_it_is_asked_for() -> None:
    report = analyse(three_steps().trace(), last_step=True)
    assert (report.window.work, report.window.left_out) == (3, 0)
    assert report.steps is not None
    assert report.steps.in_window == 3


def test_work_launched_before_the_first_step_is_left_out() -> None:
    maker = Maker()
    maker.launch(0, 10, 50, name="setting up")
    maker.step(1, 10_000, 100)
    maker.launch(10_010, 10_020, 50)
    report = analyse(maker.trace())
    assert (report.window.work, report.window.left_out) == (1, 1)


def test_a_single_step_counts() -> None:
    maker = Maker()
    maker.step(1, 0, 100)
    maker.launch(10, 20, 50)
    assert analyse(maker.trace()).window.work == 1


def test_without_steps_everything_counts() -> None:
    maker = Maker()
    maker.kernel(0, 10)
    report = analyse(maker.trace())
    assert report.steps is None
    assert report.window.work == 1


def test_steps_without_any_launch_leave_the_whole_trace() -> None:
    maker = Maker()
    maker.step(1, 0, 100)
    maker.step(2, 100, 100)
    maker.kernel(10, 10)
    maker.kernel(110, 10)
    assert analyse(maker.trace()).window.work == 2


def test_a_trace_of_the_host_alone_is_refused_with_a_hint() -> None:
    maker = Maker()
    maker.op("aten::mm", 0, 100)
    with pytest.raises(UserError, match="has no GPU work") as caught:
        analyse(maker.trace())
    assert caught.value.hint is not None
    assert "ProfilerActivity.CUDA" in caught.value.hint

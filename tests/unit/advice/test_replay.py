"""A step played again with something changed: what a host second, a wait and a faster kernel are worth."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.advice.prediction.gain import ratio
from monitor.advice.prediction.lanes import BESIDE, ORDER, Edit, Lanes
from monitor.advice.prediction.step_graph import Segment, StepGraph
from monitor.advice.prediction.step_model import Change, StepModel, saved


def lanes_of(*segments: Segment) -> Lanes:
    return Lanes({}, {}, {}, StepGraph(segments))


def model_of(lanes: Lanes) -> StepModel:
    parts = dict(lanes.graph.played.host)
    wait = parts.pop("data", 0.0)
    return StepModel(parts=parts, wait=wait, work=wait, lanes=lanes)


def test_a_host_second_behind_which_the_device_works_is_worth_nothing() -> None:
    lanes = lanes_of(Segment("data", 0.008), Segment("forward", 0.002, device=0.011, launches=10))
    assert ratio(model_of(lanes), saved("data", 0.008, "loading")) == pytest.approx(1.0)


def test_idle_time_of_a_wait_for_data_is_saved_with_the_wait() -> None:
    lanes = lanes_of(Segment("data", 0.009), Segment("forward", 0.001, device=0.004, launches=1000))
    assert ratio(model_of(lanes), saved("data", 0.009, "loading")) == pytest.approx(2.5)


def test_samples_that_wait_take_no_core_from_the_host() -> None:
    """GIVEN 30 ms of samples that only wait, and 2 cores WHEN 8 workers make them THEN the device decides."""
    lanes = lanes_of(Segment("data", 0.030), Segment("forward", 0.002, device=0.008, launches=1000))
    model = replace(model_of(lanes), work_cpu=0.0, cores=2.0)
    assert ratio(model, Change(workers=8)) == pytest.approx(0.032 / 0.008, rel=0.01)


def test_a_read_before_loading_keeps_both_from_overlapping() -> None:
    """GIVEN work, a read of its result, then loading THEN without the read they overlap."""
    lanes = lanes_of(
        Segment("data", 0.004), Segment("forward", 0.001, 0.010, launches=1000), Segment("sync", 0.0, syncs=1)
    )
    assert lanes.graph.played.period == pytest.approx(0.014, rel=0.01)
    assert ratio(model_of(lanes), Change(syncs_left=0.0)) == pytest.approx(1.4, rel=0.01)


def test_a_faster_kernel_helps_only_a_host_that_is_ahead() -> None:
    slow = lanes_of(Segment("forward", 0.010, device=0.005, launches=100))
    assert ratio(model_of(slow), Change(device_left=0.5)) == pytest.approx(1.0)
    ahead = lanes_of(Segment("forward", 0.002, device=0.005, launches=100))
    assert ratio(model_of(ahead), Change(device_left=0.5)) == pytest.approx(2.0)
    assert ratio(model_of(ahead), Change(device_left=0.1)) == pytest.approx(2.5), "then the host decides"


def test_a_larger_batch_fills_the_gaps_of_a_launch_bound_step() -> None:
    model = model_of(lanes_of(Segment("forward", 0.010, device=0.001, launches=100)))
    assert ratio(model, Change(batch=4.0)) == pytest.approx(4.0)
    assert ratio(model, Change(batch=20.0)) == pytest.approx(10.0)


def test_a_larger_batch_is_copied_longer() -> None:
    copying = (Segment("transfer", 0.0, copies=5.0, holds=1), Segment("forward", 1.0, 4.0, launches=1e6))
    lanes = lanes_of(*copying)
    assert lanes.graph.played.period == pytest.approx(9.0)
    assert ratio(model_of(lanes), Change(batch=4.0)) == pytest.approx(1.0)
    assert ratio(model_of(lanes), Change(copies_left=0.2)) == pytest.approx(9.0 / 5.0)


def test_what_is_not_read_is_not_copied() -> None:
    lanes = lanes_of(
        Segment("forward", 0.002, 0.010, launches=100), Segment("log", 0.0, reads=0.005, syncs=1)
    )
    assert lanes.graph.played.period == pytest.approx(0.015, rel=0.01)
    assert ratio(model_of(lanes), Change(syncs_left=0.0)) == pytest.approx(1.5, rel=0.01)


def test_what_is_saved_beyond_the_own_time_of_a_phase_was_waiting() -> None:
    segments = (
        Segment("forward", 0.002, 0.008, launches=1000),
        Segment("log", 0.0, syncs=1),
        Segment("log", 0.002),
    )
    model = model_of(lanes_of(*segments))
    assert model.period == pytest.approx(0.010, rel=0.01)
    assert ratio(model, saved("log", 0.008, "log")) == pytest.approx(0.010 / 0.008, rel=0.01)


def test_an_evaluation_that_is_not_made_is_no_work_for_the_device_either() -> None:
    segments = (Segment("forward", 0.002, 0.010, launches=50), Segment("validate", 0.002, 0.010, launches=50))
    model = model_of(lanes_of(*segments))
    assert ratio(model, saved("validate", 0.001, "validate")) == pytest.approx(0.020 / 0.015)
    assert ratio(model, saved("forward", 0.001, "sync")) == pytest.approx(1.0), "the device works meanwhile"


SECONDS = st.floats(0.0, 0.1)
SEGMENTS = st.lists(
    st.builds(
        Segment,
        st.sampled_from(ORDER),
        host=SECONDS,
        device=SECONDS,
        launches=st.integers(0, 50),
        syncs=st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
)


@given(SEGMENTS, st.dictionaries(st.sampled_from(ORDER), SECONDS), st.floats(0.0, 1.0))
def test_no_gain_beyond_the_work_that_is_left(
    segments: list[Segment], saved: dict[str, float], left: float
) -> None:
    lanes = lanes_of(*segments)
    after = (
        lanes.graph.played.period / lanes.gain(Edit(saved, device=left)) if lanes.graph.played.period else 0.0
    )
    beside = sum(one.device for one in segments if one.phase in BESIDE)
    assert after >= left * (sum(one.device for one in segments) - beside) - 1e-9
    assert after <= lanes.graph.played.period + 1e-9

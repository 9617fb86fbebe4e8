"""Replaying a step, against the same program kernel by kernel; and the graph of a window."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.advice.prediction.step_graph import ROUNDS, Segment, StepGraph, told
from sdk.device._gaps import Activity, Kernel, Span
from sdk.device._graph import MOST, step_graph

SEGMENTS = st.lists(
    st.builds(
        Segment,
        st.sampled_from(("data", "forward", "backward", "between")),
        host=st.floats(0.0, 0.01),
        device=st.floats(0.0, 0.01),
        launches=st.integers(1, 30),
        syncs=st.integers(0, 1),
    ),
    min_size=1,
    max_size=6,
)


def kernel_by_kernel(segments: list[Segment]) -> float:
    """Seconds of the last step."""
    host = device = began = 0.0
    for _ in range(ROUNDS):
        began = max(host, device)
        for one in segments:
            for _ in range(int(one.launches)):
                host += one.host / one.launches
                device = max(device, host) + one.device / one.launches if one.device > 0 else device
            host = max(host, device) if one.syncs else host
    return max(host, device) - began


@given(SEGMENTS)
def test_it_is_what_the_kernels_would_do(segments: list[Segment]) -> None:
    assert StepGraph(tuple(segments)).played.period == pytest.approx(
        kernel_by_kernel(segments), rel=1e-6, abs=1e-9
    )


@given(SEGMENTS, st.integers(0, 2**32))
def test_own_times_follow_what_was_measured(segments: list[Segment], seed: int) -> None:
    """GIVEN a graph whose host was slower by a different factor in each phase WHEN it is given the measured
    times THEN it shows them."""
    chance = random.Random(seed)
    factors = {phase: chance.uniform(1.0, 1.6) for phase in ("data", "forward", "backward", "between")}
    truth = StepGraph(tuple(segments)).played
    looked_at = StepGraph(tuple(replace(one, host=one.host * factors[one.phase]) for one in segments))
    found = looked_at.fitted(truth.host, slower=True).played
    assert found.period == pytest.approx(truth.period, rel=0.02, abs=1e-6)


def test_a_host_that_waits_for_room_in_the_queue_is_not_slow() -> None:
    graph = StepGraph((Segment("forward", 0.002, device=0.010, launches=100),))
    assert graph.fitted({"forward": 0.010}, slower=False).own == {"forward": pytest.approx(0.002)}


def test_steps_of_two_kinds_are_played_one_after_the_other() -> None:
    """GIVEN a step with long host work and one without THEN figures are those of the mean step."""
    short, long = Segment("forward", 0.001, 0.002, launches=100), Segment("between", 0.019)
    graph = StepGraph((short, long, short), steps=2)
    assert graph.played.period == pytest.approx(0.0105, rel=0.01)
    assert graph.own == pytest.approx({"forward": 0.001, "between": 0.0095})
    assert graph.work == pytest.approx(0.002)


@pytest.mark.parametrize(
    "segments",
    [None, 3, [], [3], [["forward"]], [["forward", 1, 2, "x", 4, 5, 6, 7]], [["f", *[1] * 7]] * 500],
)
def test_what_is_no_graph_is_none(segments: object) -> None:
    assert told({"steps": 1, "segments": segments}) is None
    assert told(segments) is None


def test_a_graph_as_the_sdk_writes_it() -> None:
    raw = {"steps": 3, "segments": [["forward", 1000.0, 2000.0, 0.0, 3000.0, 7, 1, 0]]}
    assert told(raw) == StepGraph((Segment("forward", 0.001, 0.002, 0.0, 0.003, 7, 1),), 3)


# ── of a window ──────────────────────────────────────────────────────────────────────────────────

FORWARD, BETWEEN = 3, 9


def test_segments_of_a_step() -> None:
    """GIVEN kernels, a read and a copy that holds the host THEN each is where it was, and neither the waits
    nor a launch that waited for room count as host time."""
    kernels = [Kernel(10, 50, 5, "a"), Kernel(50, 90, 20, "b"), Kernel(120, 130, 115, "c")]
    launches = [Span(5, 6), Span(20, 21), Span(115, 116)]
    copies = [Kernel(90, 92, 40, "Memcpy DtoH"), Kernel(140, 160, 135, "Memcpy HtoD (Pageable -> Device)")]
    seen = Activity(kernels, [], [], [Span(40, 100)], copies, [Span(135, 160)], launches)
    marks = [(0, FORWARD), (110, BETWEEN), (200, FORWARD)]
    steps, (first, second, third, fourth) = step_graph(seen, [marks])
    assert steps == 1
    assert (first.phase, first.host, first.device, first.reads) == (FORWARD, 40, 80, 2)
    assert (first.launches, first.syncs, first.holds) == (3, 1, 0)
    assert (second.phase, second.host) == (FORWARD, 10)
    assert (third.phase, third.host, third.device, third.copies, third.holds) == (BETWEEN, 25, 10, 20, 1)
    assert (fourth.host, fourth.syncs, fourth.holds) == (40, 0, 0)


def test_a_wait_behind_a_copy_is_for_the_copy() -> None:
    copies = [Kernel(12, 20, 10, "Memcpy HtoD (Pageable -> Device)")]
    seen = Activity([Kernel(30, 40, 25)], [], [], [Span(11, 20)], copies)
    _, (first, _) = step_graph(seen, [[(0, FORWARD), (50, BETWEEN)]])
    assert (first.syncs, first.holds) == (0, 1)


def test_a_full_queue_is_no_time_of_the_host() -> None:
    launches = [Span(at, at + 1_000) for at in range(0, 90_000, 10_000)] + [Span(100_000, 900_000)]
    kernels = [Kernel(one.begin, one.end, one.begin) for one in launches]
    seen = Activity(kernels, [], [], [], [], [], launches)
    _, (only,) = step_graph(seen, [[(0, FORWARD), (1_000_000, FORWARD)]])
    assert only.host == 200_000


def test_very_many_waits_become_one_segment_a_phase() -> None:
    waits = [Span(at, at + 5) for at in range(0, 1000, 10)]
    kernels = [Kernel(at, at + 3, at) for at in range(0, 1000, 10)]
    marks = [(0, FORWARD), (1000, BETWEEN), (1010, FORWARD)]
    _, found = step_graph(Activity(kernels, [], [], waits), [marks])
    assert len(found) == 2 <= MOST
    assert found[0].syncs == 100 and found[0].host == 500 and found[0].launches == 100


def test_of_long_steps_there_are_fewer() -> None:
    """GIVEN steps with many phases each THEN as many as fit are reported."""
    kernels = [Kernel(at, at + 3, at) for at in range(0, 4000, 20)]
    phases = [(at, FORWARD if at % 40 else BETWEEN) for at in range(0, 4020, 20)]
    marks = [phases[first : first + 51] for first in (0, 50, 100, 150)]
    steps, found = step_graph(Activity(kernels, [], [], []), marks)
    assert (steps, len(found)) == (1, 50)
    assert step_graph(Activity(kernels, [], [], []), [phases]) == (1, [])

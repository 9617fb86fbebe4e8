"""How many steps of a window are told, and when their segments are merged."""

from __future__ import annotations

import pytest

from sdk.core.phases import BACKWARD, FORWARD
from sdk.device._gaps import Activity, Kernel, Span
from sdk.device._graph import MOST, step_graph

STEP = 100_000


def window(steps: int, waits: int) -> tuple[Activity, list[list[tuple[int, int]]]]:
    """Steps of two phases; in the first, kernels of growing length, each waited for."""
    seen, marks = Activity([], [], [], []), []
    for number in range(steps):
        begin = number * STEP
        for at in range(waits):
            launched = begin + at * 1000
            seen.kernels.append(Kernel(launched + 10, launched + 500 + at, launched))
            seen.waits.append(Span(launched + 20, launched + 500 + at))
        marks.append([(begin, FORWARD), (begin + STEP - 1000, BACKWARD), (begin + STEP, FORWARD)])
    return seen, marks


@pytest.mark.parametrize(("waits", "told"), [(10, 4), (40, 2)])
def test_fewer_steps_are_told_as_they_were_before_any_are_merged(waits: int, told: int) -> None:
    steps, segments = step_graph(*window(4, waits))
    assert steps == told and len(segments) <= MOST
    assert max(one.syncs for one in segments) == 1, "each wait has its own kernel before it"
    assert sum(one.syncs for one in segments) == told * waits


def test_steps_with_too_many_waits_are_merged_with_all_of_them() -> None:
    steps, segments = step_graph(*window(4, 90))
    assert steps == 4 and len(segments) <= 8
    assert sum(one.syncs for one in segments) == 4 * 90

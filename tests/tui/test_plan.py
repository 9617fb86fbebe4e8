"""The lines of the overview: in every size they fit, and nothing is squeezed out."""

from __future__ import annotations

import pytest

from monitor.tui.frame import Frame
from monitor.tui.plan import ANSWER, gpu_lines, plan
from tests.tui import scenes
from tests.tui.shots import MADE
from tests.tui.stage import staged

SCENES = [*scenes.SCENES, "hosts", "disconnected"]


def frame_of(scene: str) -> Frame:
    return (MADE[scene]() if scene in MADE else staged(scene)).frame


@pytest.mark.parametrize("scene", SCENES)
def test_every_size_is_filled_and_never_exceeded(scene: str) -> None:
    frame = frame_of(scene)
    for width in (60, 80, 120, 200):
        for height in range(22, 70, 3):
            made = plan(frame, width, height)
            total = made.answer + made.gpus + made.runs + made.advice + made.processes + 3 * made.airy
            assert total <= height or height < 24, (width, height, made)
            assert min(made.gpus, made.runs, made.advice) >= 2
            assert total >= height - 3, (width, height, made)


def test_sixteen_gpus_fit_an_old_terminal() -> None:
    made = plan(frame_of("sixteen"), 80, 22)
    assert made.gpus == 9 and made.runs >= 2 and made.advice >= 2


def test_few_gpus_are_cards_and_many_are_rows() -> None:
    assert gpu_lines(1, 20, 80) == 6
    assert gpu_lines(8, 20, 80) == 9
    assert gpu_lines(16, 12, 80) == 9
    assert gpu_lines(0, 20, 80) == 2


def test_hidden_processes_leave_their_room_to_the_others() -> None:
    frame = frame_of("data-bound")
    shown, hidden = plan(frame, 120, 38), plan(frame, 120, 38, show_processes=False)
    assert shown.processes > 0 and hidden.processes == 0
    assert hidden.gpus + hidden.advice > shown.gpus + shown.advice and shown.answer == ANSWER

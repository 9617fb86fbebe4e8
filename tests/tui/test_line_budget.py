"""The lines of a screen: in every size they fit, and nothing is squeezed out."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import pytest

from monitor.tui.frame import Frame
from monitor.tui.line_budget import Wants, divide
from monitor.tui.overview import overview_panels
from monitor.tui.text import Room
from monitor.tui.views.processes import Order
from tests.tui import scenes
from tests.tui.shots import MADE
from tests.tui.stage import staged

SCENES = [*scenes.SCENES, "hosts", "disconnected"]


@dataclass
class Still:
    """What the overview's panels are drawn from, without an app."""

    frame: Frame
    shows_processes: bool = True
    shows_fix: bool = False
    chosen_finding: Hashable = None
    order: Order = field(default_factory=Order)

    @property
    def picked(self) -> Frame:
        return self.frame


def frame_of(scene: str) -> Frame:
    return (MADE[scene]() if scene in MADE else staged(scene)).frame


def lines_of(source: Still, width: int, height: int) -> tuple[dict[str, int], int]:
    """Panel → its lines, and how many blank lines are between them."""
    panels = overview_panels(source)
    wants = [panel.wants(Room(width, height)) for panel in panels]
    budget = divide(wants, height)
    names = [panel.name for panel in panels]
    blanks = sum(want.spaced for want in wants) * budget.spaced
    return dict(zip(names, budget.lines, strict=True)), blanks


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_every_size_is_filled_and_never_exceeded(scene: str) -> None:
    source = Still(frame_of(scene))
    for width in (60, 80, 120, 200):
        for height in range(22, 70, 3):
            lines, blanks = lines_of(source, width, height)
            total = sum(lines.values()) + blanks
            assert total <= height or height < 24, (width, height, lines)
            assert min(lines["gpus"], lines["runs"], lines["findings"]) >= 2
            assert total >= height - 3, (width, height, lines)


def test_sixteen_gpus_fit_an_old_terminal() -> None:
    lines, _ = lines_of(Still(frame_of("sixteen")), 80, 22)
    assert lines["gpus"] == 9 and lines["runs"] >= 2 and lines["findings"] >= 2


def test_few_gpus_are_cards_and_many_are_rows() -> None:
    assert lines_of(Still(frame_of("one-busy")), 80, 22)[0]["gpus"] >= 6
    assert lines_of(Still(frame_of("no-run")), 80, 22)[0]["gpus"] == 9
    assert lines_of(Still(frame_of("no-gpu")), 80, 22)[0]["gpus"] == 2


def test_hidden_processes_leave_their_room_to_the_others() -> None:
    frame = frame_of("data-bound")
    shown, _ = lines_of(Still(frame), 120, 38)
    hidden, _ = lines_of(Still(frame, shows_processes=False), 120, 38)
    assert shown["processes"] > 0 and hidden["processes"] == 0
    assert hidden["host"] > shown["host"]


@pytest.mark.parametrize(
    ("height", "lines"),
    [(30, (11, 8, 11)), (16, (6, 8, 2)), (10, (6, 4, 0)), (7, (3, 4, 0)), (5, (2, 4, 0))],
)
def test_the_best_size_that_fits_then_growth_from_below_then_squeezing(
    height: int, lines: tuple[int, ...]
) -> None:
    first = Wants((6, 3), most=11, squeezed=2)
    second = Wants((4,), most=8)
    last = Wants((0,), most=2, smallest=2, takes_rest=True)
    assert divide([first, second, last], height).lines == lines


def test_blank_lines_come_only_when_all_panels_can_have_theirs() -> None:
    wants = [Wants((2,), spaced=True), Wants((2,), spaced=True)]
    assert [divide(wants, height).spaced for height in (5, 6)] == [False, True]

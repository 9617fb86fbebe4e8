"""Tables and wrapped lines: nothing is broken inside a word, nothing is lost in a pipe."""

from __future__ import annotations

import pytest

from monitor.report.live_line import line
from monitor.terminal import PLAIN, Terminal, code, hints, table, wrapped
from tests import scene

HEAD = ("run", "state", "steps", "finding")
ROWS = [
    ("run-1117-190247-916c48", "ended", "12,345", "compute.validation_too_often"),
    ("b\x1b[2J", "killed", "1", ""),
]


class Narrow(Terminal):
    def __init__(self, columns: int) -> None:
        super().__init__(None)
        self._columns = columns

    @property
    def width(self) -> int | None:
        return self._columns


def test_a_pipe_gets_everything() -> None:
    lines = table(HEAD, ROWS, right=(2,), below=3, spare=(1,), on=PLAIN).splitlines()
    assert lines[0].split() == list(HEAD) and lines[1].split() == list(ROWS[0])
    assert len(lines) == 3 and "\x1b" not in "".join(lines)


@pytest.mark.parametrize(("columns", "kept"), [(200, 4), (45, 3), (35, 2)])
def test_what_does_not_fit_goes_below_and_then_away(columns: int, kept: int) -> None:
    text = table(HEAD, ROWS, right=(2,), below=3, spare=(1,), on=Narrow(columns))
    assert max(map(len, text.splitlines())) <= columns
    assert len(text.splitlines()[0].split()) == kept
    assert "compute.validation_too_often" in text and "12,345" in text


def test_a_spare_column_that_no_row_fills_is_not_there() -> None:
    rows = [("a", "—", "1", "x"), ("b", "", "2", "—")]
    assert table(HEAD, rows, spare=(1, 3)).splitlines()[0].split() == ["run", "steps", "finding"]
    assert table(HEAD, rows).splitlines()[0].split() == list(HEAD)


def test_a_number_stays_with_its_unit_and_a_word_is_never_broken() -> None:
    text = "Validation takes 29 % of the time: every 30 steps, 1.21 s each, in compute.validation_too_often"
    for columns in range(40, 100):
        lines = wrapped(text, columns)
        assert " ".join(part.strip() for part in lines) == text
        assert not any(one.lstrip().startswith(("%", "s ")) for one in lines)


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_the_live_line_fits_and_says_the_steps_first(columns: int) -> None:
    text = line(scene.snapshot().runs[0], columns)
    assert len(text) <= columns and text.startswith("gpumon  1,000 steps")


@pytest.mark.parametrize("columns", [79, 119, 199])
def test_the_live_line_says_where_to_see_more(columns: int) -> None:
    assert "gpumon tui to watch" in line(scene.snapshot().runs[0], columns)


def test_a_long_line_of_a_change_goes_on_with_its_sign() -> None:
    change = (
        "- loader = DataLoader(data)\n+ loader = DataLoader(data, num_workers=2, persistent_workers=True)"
    )
    assert list(code(change, 50, "  ")) == [
        "  - loader = DataLoader(data)",
        "  + loader = DataLoader(data, num_workers=2,",
        "  +     persistent_workers=True)",
    ]
    assert list(code(change, None, "")) == change.splitlines()


COMMANDS = (("gpumon report run-1117-190247-916c48", "all of this as a page"), ("gpumon tui", "watch it"))


def test_hints_stand_in_columns_or_below_their_commands() -> None:
    beside, below = list(hints(COMMANDS, 80)), list(hints(COMMANDS, 40))
    assert beside[0].index("all of") == beside[1].index("watch it")
    assert [one.strip() for one in below] == [text for pair in COMMANDS for text in pair]

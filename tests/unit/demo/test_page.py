"""What a demonstration prints: at the width of a terminal, where lines may move; in a pipe they do not."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from monitor.demo import page as page_module
from monitor.demo.bars import Lane, Race, ranges
from monitor.demo.code import changed_code
from monitor.demo.page import Page
from monitor.terminal import PLAIN

LONG = "a sentence of some length that has to be broken where the terminal ends, " * 3


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def tty(monkeypatch: pytest.MonkeyPatch) -> Tty:
    monkeypatch.setattr(page_module, "is_attended", lambda out: out.isatty())
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    return Tty()


def test_nothing_is_wider_than_the_terminal(tty: Tty) -> None:
    page = Page(tty)
    page.chapter("A chapter")
    page.say(LONG)
    page.point("cause", LONG)
    page.change([f"+    {LONG}"])
    page.commands([("gpumon run -- python train.py", "run it " * 6)])
    assert max(map(len, tty.getvalue().splitlines())) <= 60


def test_lines_that_move_are_replaced(tty: Tty) -> None:
    page = Page(tty)
    page.draw(["one", "two"])
    page.draw(["three"])
    page.write("end")
    assert tty.getvalue() == "one\ntwo\n\x1b[2A\x1b[Jthree\n\x1b[1A\x1b[Jend\n"


def test_in_a_pipe_only_what_is_final_is_printed() -> None:
    out = io.StringIO()
    page = Page(out)
    page.draw(["moving"])
    page.write("final")
    assert out.getvalue() == "final\n"


def test_held_lines_come_when_the_terminal_is_free() -> None:
    out = io.StringIO()
    page = Page(out, held=True)
    page.say("later")
    assert out.getvalue() == ""
    page.release()
    assert out.getvalue() == "  later\n"


def test_bars_grow_with_the_steps_and_end_on_one_scale() -> None:
    race = Race(["slow", "fast"])
    race.lanes[0] = Lane("slow", 100.0, 1.0)
    race.lanes[1] = Lane("fast", 400.0, 0.5)
    half = race.lines(PLAIN, 80)[1].count("█")
    race.lanes[1].done = 1.0
    slow, fast = (line.count("█") for line in race.lines(PLAIN, 80))
    assert half < fast and fast == 4 * slow
    assert all(len(line) <= 80 for line in race.lines(PLAIN, 80))


def test_ranges_are_on_one_scale() -> None:
    narrow, wide = ranges([("a", (1.0, 1.5, 2.0)), ("b", (2.0, 3.0, 3.0))], PLAIN, 60)
    assert narrow.index("┤") == wide.index("├")
    assert "×1.5 (1.0–2.0)" in narrow


def test_the_change_is_read_from_the_source(tmp_path: Path) -> None:
    lines = changed_code("NaiveSequences.__getitem__", "NormalisedSequences._make")
    assert any(line.startswith("-") and "scaler.transform" in line for line in lines)
    assert any(line.startswith("+") and "from_numpy" in line for line in lines)
    assert changed_code("A.b", "A.c", tmp_path / "missing.py") == []

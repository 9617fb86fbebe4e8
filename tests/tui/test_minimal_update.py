"""The bytes sent for an update draw exactly the new screen, and are few beside a full repaint."""

from __future__ import annotations

import asyncio
import re
import statistics
from typing import Any

import pytest
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.pilot import Pilot

from monitor.tui.codes import Codes, change, codes
from monitor.tui.widgets.minimal_update import MinimalUpdate
from tests.tui import scenes
from tests.tui.stage import StagedApp, characters

CONSOLE = Console(color_system="truecolor", force_terminal=True)
TOKEN = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|\x1b\[(\d+)C|(\n)|([^\x1b\n]+)")


ENDS = {"22": "12", "23": "3", "24": "4", "25": "5", "27": "7", "29": "9"}


class Paper:
    """A terminal that understands cursor moves, colours and text."""

    def __init__(self, width: int, height: int) -> None:
        self.cells = [[" "] * width for _ in range(height)]
        self.styles: list[list[tuple[str, ...]]] = [[()] * width for _ in range(height)]

    def draw(self, data: str) -> None:
        x = y = 0
        state: dict[str, str] = {}
        for row, column, sgr, right, newline, text in TOKEN.findall(data):
            if row:
                y, x = int(row) - 1, int(column) - 1
            elif right:
                x += int(right)
            elif newline:
                y, x = y + 1, 0
            elif text:
                x = self._put(text, x, y, state)
            else:
                self._style(sgr, state)

    def _put(self, text: str, x: int, y: int, state: dict[str, str]) -> int:
        for char in text:
            self.cells[y][x], self.styles[y][x] = char, tuple(sorted(map(":".join, state.items())))
            x += cell_len(char)
        return x

    @staticmethod
    def _style(sgr: str, state: dict[str, str]) -> None:
        parts = (sgr or "0").split(";")
        while parts:
            code = parts.pop(0)
            if code == "0":
                state.clear()
            elif code in ("38", "48"):
                state[code] = ";".join(parts[:4])
                del parts[:4]
            elif code in ENDS:
                for one in ENDS[code]:
                    state.pop(f"a{one}", None)
            elif code in ("39", "49"):
                state.pop("38" if code == "39" else "48", None)
            else:
                state[f"a{code}"] = "on"

    def seen(self) -> list[list[tuple[str, ...]]]:
        """Styles as they are seen: of a blank only what is behind it."""
        return [
            [_behind(style) if char == " " else style for char, style in zip(chars, styles, strict=True)]
            for chars, styles in zip(self.cells, self.styles, strict=True)
        ]

    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.cells) + "\n"


def _behind(style: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for part in style if not part.startswith(("38:", "a1:", "a2:", "a3:")))


class Sent(StagedApp):
    """Draws every update on paper instead of sending it."""

    def __init__(self, *args: Any, size: tuple[int, int] = (160, 50), **options: Any) -> None:
        super().__init__(*args, **options)
        self.paper = Paper(*size)
        self.sent = 0

    def _display(self, screen: Any, renderable: Any) -> None:
        if isinstance(renderable, ChopsUpdate | LayoutUpdate):
            data = MinimalUpdate(renderable, self.shown).render_segments(CONSOLE)
            self.sent += len(data.encode())
            self.paper.draw(data)

    def check(self) -> int:
        """The paper shows what a full repaint would; how many bytes that would take."""
        whole = self.screen._compositor.render_full_update().render_segments(CONSOLE)
        fresh = Paper(len(self.paper.cells[0]), len(self.paper.cells))
        fresh.draw(whole)
        assert self.paper.text() == characters(self)
        assert fresh.cells == self.paper.cells and fresh.seen() == self.paper.seen()
        return len(whole.encode())


async def tick(pilot: Pilot[None], app: Sent, scene: str, number: int) -> int:
    """Bytes sent for a new snapshot."""
    before = app.sent
    app.inbox.put(0, scenes.SCENES[scene](scenes.TICKS + number))
    await pilot.pause()
    await pilot.pause()
    return app.sent - before


def test_updates_draw_what_a_full_picture_would() -> None:
    async def go() -> None:
        app = Sent([("lab-07", list(scenes.ticks("eight")))])
        async with app.run_test(size=(160, 50)) as pilot:
            await pilot.pause()
            sizes = []
            for number in range(1, 6):
                sizes.append(await tick(pilot, app, "eight", number))
                whole = app.check()
            assert statistics.median(sizes) < whole / 4

    asyncio.run(go())


MOVES = (
    "down",
    "down",
    "up",
    "tab",
    "down",
    "tab",
    "down",
    "tab",
    "down",
    "p",
    "down",
    "down",
    "r",
    "s",
    "up",
)


@pytest.mark.slow
def test_a_move_of_the_selection_repaints_whole_rows() -> None:
    """Also when the rows change their order in the same moment."""

    async def go() -> None:
        app = Sent([("lab-07", list(scenes.ticks("eight")))], size=(120, 40))
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            for number, key in enumerate(MOVES, 1):
                await pilot.press(key)
                await tick(pilot, app, "eight", number)
                app.check()

    asyncio.run(go())


def test_only_what_differs_is_said() -> None:
    red = codes(Style.parse("red on #101010"), ColorSystem.TRUECOLOR)
    blue = codes(Style.parse("blue on #101010"), ColorSystem.TRUECOLOR)
    bold = codes(Style.parse("bold blue on #101010"), ColorSystem.TRUECOLOR)
    assert change(red, red) == ""
    assert "48" not in change(red, blue)
    assert change(bold, blue) == "\x1b[22m" and change(blue, bold) == "\x1b[1m"
    assert change(Codes("1;3"), Codes("2;3")) == "\x1b[22;2m"
    assert change(blue, Codes()) == "\x1b[39;49m"
    assert codes(Style.parse("bold red"), None) == Codes("1")

"""The bytes sent for an update draw exactly the new picture, and are few."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate
from textual.pilot import Pilot

from monitor.tui.widgets.tight import Codes, TightUpdate, change, codes
from tests.tui import scenes
from tests.tui.stage import StagedApp, characters

CONSOLE = Console(color_system="truecolor", force_terminal=True)
TOKEN = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|(\n)|([^\x1b\n]+)")


class Paper:
    """A terminal that knows cursor moves, colours and text."""

    def __init__(self, width: int, height: int) -> None:
        self.cells = [[" "] * width for _ in range(height)]
        self.styles = [[""] * width for _ in range(height)]

    def draw(self, data: str) -> None:
        x = y = 0
        state: dict[str, str] = {}
        for row, column, sgr, newline, text in TOKEN.findall(data):
            if row:
                y, x = int(row) - 1, int(column) - 1
            elif newline:
                y, x = y + 1, 0
            elif text:
                x = self._put(text, x, y, state)
            else:
                self._style(sgr, state)

    def _put(self, text: str, x: int, y: int, state: dict[str, str]) -> int:
        for char in text:
            self.cells[y][x], self.styles[y][x] = char, str(sorted(state.items()))
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
            elif code in ("39", "49"):
                state.pop("38" if code == "39" else "48", None)
            else:
                state[f"a{code}"] = "on"

    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.cells) + "\n"


class Sent(StagedApp):
    """Keeps every update instead of sending it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.updates: list[CompositorUpdate] = []

    def _display(self, screen: Any, renderable: Any) -> None:
        if isinstance(renderable, ChopsUpdate):
            renderable = TightUpdate(renderable.chops, renderable.spans, renderable.chop_ends)
        if isinstance(renderable, CompositorUpdate):
            self.updates.append(renderable)


def test_partial_updates_draw_what_a_full_picture_would() -> None:
    async def go() -> None:
        app = Sent([("lab-07", list(scenes.ticks("eight")))])
        async with app.run_test(size=(160, 50)) as pilot:
            await pilot.pause()
            paper = Paper(160, 50)
            paper.draw(app.screen._compositor.render_full_update().render_segments(CONSOLE))
            for tick in range(1, 6):
                sizes = await _tick(pilot, app, paper, tick)
                assert paper.text() == characters(app)
                assert sizes < 12_000
            fresh = Paper(160, 50)
            fresh.draw(app.screen._compositor.render_full_update().render_segments(CONSOLE))
            assert fresh.cells == paper.cells and fresh.styles == paper.styles

    asyncio.run(go())


async def _tick(pilot: Pilot[None], app: Sent, paper: Paper, tick: int) -> int:
    app.updates.clear()
    app.inbox.put(0, scenes.SCENES["eight"](scenes.TICKS + tick))
    await pilot.pause()
    await pilot.pause()
    sent = [update.render_segments(CONSOLE) for update in app.updates]
    assert all(isinstance(update, TightUpdate) for update in app.updates)
    for data in sent:
        paper.draw(data)
    return sum(map(len, sent))


def test_only_what_differs_is_said() -> None:
    red = codes(Style.parse("red on #101010"), ColorSystem.TRUECOLOR)
    blue = codes(Style.parse("blue on #101010"), ColorSystem.TRUECOLOR)
    bold = codes(Style.parse("bold blue on #101010"), ColorSystem.TRUECOLOR)
    assert change(red, red) == ""
    assert "48" not in change(red, blue)
    assert change(bold, blue).startswith("\x1b[0;") and "48;2;16;16;16" in change(bold, blue)
    assert change(blue, Codes()) == "\x1b[39;49m"
    assert codes(Style.parse("bold red"), None) == Codes("1")

"""Two runs side by side: is it faster, and as much as predicted?"""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from monitor.compare import Comparison
from monitor.tui.screens.page import Page
from monitor.tui.text import Block
from monitor.tui.views import history as view
from monitor.tui.widgets.panel import Panel, Room


class CompareScreen(Page):
    crumb = "compare"

    def __init__(self, found: Comparison) -> None:
        super().__init__()
        self._found = found

    def body(self) -> Iterable[Widget]:
        yield Panel(self._content, id="main")

    def on_mount(self) -> None:
        self.query_one("#main").focus()

    def _content(self, room: Room) -> Block:
        return Block(rows=tuple(view.comparison(self._found, room)))

"""Two runs side by side: is it faster, and as much as predicted?"""

from __future__ import annotations

from collections.abc import Sequence

from monitor.comparison.compare_runs import Comparison
from monitor.tui.panels import PanelSpec
from monitor.tui.screens.page import Page
from monitor.tui.text import Block, Room
from monitor.tui.views import history as view


class CompareScreen(Page):
    title_text = "compare"

    def __init__(self, found: Comparison) -> None:
        super().__init__()
        self._found = found

    def panels(self) -> Sequence[PanelSpec]:
        return (PanelSpec("main", self._content),)

    def _content(self, room: Room) -> Block:
        return Block(rows=tuple(view.comparison(self._found, room)))

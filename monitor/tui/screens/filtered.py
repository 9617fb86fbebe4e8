"""A screen with a filter line: only what contains all the typed words is shown."""

from __future__ import annotations

from textual import on
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from monitor.language import said
from monitor.tui.screens.page import Page

FILTER = Binding("slash", "filter", "Filter", tooltip="Words that must occur; Escape shows all again")


class Filtered(Page):
    """`/` opens the line, Enter keeps the words, Escape drops them."""

    filter_hint = "filter"

    def filter_bar(self, text: str = "") -> Widget:
        bar = Input(text, placeholder=said(self.filter_hint), id="filter")
        bar.display = bool(text)
        return bar

    def filter_changed(self, text: str) -> None:
        """Show what matches these words; the base class has nothing to hide."""

    def list_widget(self) -> Widget:
        """Gets the focus once the words are typed."""
        return self.query_one("#table")

    @property
    def filter_lines(self) -> int:
        bars = self.query("#filter")
        return int(bool(bars) and bars.first().display)

    def action_filter(self) -> None:
        bar = self.query_one("#filter", Input)
        bar.display = True
        bar.focus()

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        self.filter_changed(event.value)

    @on(Input.Submitted, "#filter")
    def _done(self) -> None:
        bar = self.query_one("#filter", Input)
        bar.display = bool(bar.value)
        self.list_widget().focus()
        self.show_frame()

    def action_back(self) -> None:
        """Escape leaves the filter first, then the screen."""
        bar = self.query_one("#filter", Input)
        if not bar.display:
            super().action_back()
            return
        bar.value = ""
        bar.display = False
        self.filter_changed("")
        self.list_widget().focus()
        self.show_frame()

"""The first screen: is this GPU well used, and if not, why?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from monitor.tui.plan import beside, plan
from monitor.tui.screens.page import Page, set_height
from monitor.tui.text import Block
from monitor.tui.views import findings, gpus, processes, remedy, runs, top
from monitor.tui.widgets.panel import Panel, Room


class Overview(Page):
    """GPUs, runs, findings with the fix of the chosen one beside, processes."""

    extra_lines = 0
    """Lines a subclass needs for itself."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "app.processes", "Processes", tooltip="All processes: sort, filter, tree, signal"),
        Binding("h", "app.history", "History", tooltip="Past runs: open, compare, replay"),
        Binding("escape", "back", "Back", show=False),
    ]

    def body(self) -> Iterable[Widget]:
        yield Panel(lambda room: top.answer(self.frame, room), id="answer", focusable=False)
        yield Panel(lambda room: gpus.table(self.frame, room), id="gpus")
        yield Panel(lambda room: runs.table(self.frame, room), id="runs")
        with Horizontal(id="advice"):
            yield Panel(self._findings, id="findings", classes="keeps-cursor")
            yield Panel(self._fix, id="fix", focusable=False)
        yield Panel(
            lambda room: processes.table(self.frame, room, self.monitor.order, brief=True), id="processes"
        )

    def on_mount(self) -> None:
        self.query_one("#gpus").focus()

    def _findings(self, room: Room) -> Block:
        return findings.table(self.frame, room, fix=not self.query_one("#fix").display)

    def _fix(self, room: Room) -> Block:
        key = self.query_one("#findings", Panel).cursor
        found = findings.lookup(self.frame, key) or next(self.frame.findings(), None)
        return remedy.preview(self.frame, *found, room) if found else Block()

    def share_room(self) -> None:
        if not self.query("#gpus"):
            return
        shown = self.monitor.prefs.processes
        made = plan(
            self.frame, self.size.width, self.size.height - 2 - self.extra_lines, show_processes=shown
        )
        for name in ("answer", "gpus", "runs", "advice", "processes"):
            set_height(self.query_one(f"#{name}"), getattr(made, name))
        self.set_class(made.airy, "-airy")
        self.query_one("#fix").display = beside(self.frame, self.size.width, self.size.height - 2)

    def on_panel_moved(self, event: Panel.Moved) -> None:
        if event.panel.id == "findings":
            self.query_one("#fix", Panel).rebuild()

    def action_back(self) -> None:
        """The overview is where Escape ends."""

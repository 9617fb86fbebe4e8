"""All processes: sort, filter, tree, and signals after a confirmation."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from monitor.tui.screens.environment import EnvironmentScreen
from monitor.tui.screens.filtered import FILTER, Filtered
from monitor.tui.screens.signal import SignalScreen
from monitor.tui.signals import Target
from monitor.tui.text import Block, Room
from monitor.tui.views import processes as view
from monitor.tui.widgets.panel import Panel

SORTED = tuple(view.SORTS)


class ProcessesScreen(Filtered):
    title_text = "processes"
    filter_hint = "filter: pid, user, command, run, container…"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort(1)", "Sort", tooltip="By the next column; click a title for that column"),
        FILTER,
        Binding("t", "tree", "Tree", show=False, tooltip="Workers under their trainers"),
        Binding("x", "signal", "Signal", tooltip="Send a signal (asks first)"),
        Binding("e", "environment", "Environment", show=False, tooltip="What the process was started with"),
        Binding("escape", "back", "Back", show=False),
        Binding("greater_than_sign", "sort(1)", "Sort right", show=False, tooltip="By the next column"),
        Binding("less_than_sign", "sort(-1)", "Sort left", show=False, tooltip="By the previous column"),
        Binding("r", "reverse", "Reverse", show=False, tooltip="Reverse the order"),
        Binding("space", "app.pause", "Pause", show=False),
    ]

    def body(self) -> Iterable[Widget]:
        yield self.filter_bar(self.monitor.order.text)
        yield Panel(self._table, id="table")

    def on_mount(self) -> None:
        self.query_one("#table").focus()

    def _table(self, room: Room) -> Block:
        return view.table(self.frame, room, self.monitor.order)

    def _change(self, **what: object) -> None:
        self.monitor.order = replace(self.monitor.order, **what)  # type: ignore[arg-type]
        self.query_one("#table", Panel).rebuild()

    def open(self, key: Hashable) -> None:
        """A click on a title sorts; a process opens the run it belongs to."""
        match key:
            case ("sort", str(name)) if name in view.SORTS:
                same = name == self.monitor.order.sort
                self._change(sort=name, reverse=not self.monitor.order.reverse if same else True)
            case ("process", str(host), int(pid), _):
                process = self._process(host, pid)
                if process is not None and process.process.run:
                    super().open(("run", host, process.process.run))

    def _process(self, host: str, pid: int) -> view.Entry | None:
        found = view.entries(self.frame, view.Order())
        return next((e for e in found if e.host.label == host and e.process.pid == pid), None)

    def action_sort(self, by: int) -> None:
        at = SORTED.index(self.monitor.order.sort)
        self._change(sort=SORTED[(at + by) % len(SORTED)], reverse=True)

    def action_reverse(self) -> None:
        self._change(reverse=not self.monitor.order.reverse)

    def action_tree(self) -> None:
        self._change(tree=not self.monitor.order.tree)

    def filter_changed(self, text: str) -> None:
        self._change(text=text)

    def _chosen(self) -> view.Entry | None:
        key = self.query_one("#table", Panel).cursor
        return self._process(key[1], key[2]) if isinstance(key, tuple) else None

    def action_environment(self) -> None:
        entry = self._chosen()
        if entry is not None:
            self.app.push_screen(EnvironmentScreen(Target.of(entry)))

    def action_signal(self) -> None:
        entry = self._chosen()
        if self.monitor.readonly:
            self.notify("signals are off: gpumon runs with --readonly", severity="warning")
        elif entry is not None:
            self.app.push_screen(SignalScreen(Target.of(entry)))

"""The first screen: is this GPU well used, and if not, why?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from monitor.tui.frame import Frame
from monitor.tui.overview import overview_panels
from monitor.tui.panels import PanelSpec
from monitor.tui.pick import ORDERS, Pick
from monitor.tui.screens.filtered import FILTER, Filtered
from monitor.tui.views.processes import Order
from monitor.tui.widgets.panel import Panel


class Overview(Filtered):
    """GPUs, runs, findings beside the fix of the chosen one, the machine, processes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "app.processes", "Processes", tooltip="All processes: sort, filter, tree, signal"),
        Binding("h", "app.history", "History", tooltip="Past runs: open, compare, replay"),
        FILTER,
        Binding("o", "order", "Order", show=False, tooltip="Change the order of GPUs and runs"),
        Binding("m", "mine", "Mine", show=False, tooltip="Only your GPUs, runs and processes, or all"),
        Binding("escape", "back", "Back", show=False),
    ]
    filter_hint = "filter: GPU, run, user, finding, process…"
    _last: tuple[Frame, Frame] | None = None

    def panels(self) -> Sequence[PanelSpec]:
        return overview_panels(self)

    def body(self) -> Iterable[Widget]:
        return (self.filter_bar(self.monitor.pick.words), *super().body())

    @property
    def picked(self) -> Frame:
        """The chosen part of the frame, made once for all panels."""
        frame = self.frame
        if self._last is None or self._last[0] is not frame or self._last[1].pick != self.monitor.pick:
            self._last = frame, frame.picked(self.monitor.pick)
        return self._last[1]

    @property
    def pick(self) -> Pick:
        return self.monitor.pick

    @property
    def order(self) -> Order:
        return self.monitor.order

    @property
    def shows_processes(self) -> bool:
        return self.monitor.preferences.processes

    @property
    def shows_fix(self) -> bool:
        return self.query_one("#fix").display

    @property
    def chosen_finding(self) -> Hashable:
        return self.query_one("#findings", Panel).cursor

    def on_panel_moved(self, event: Panel.Moved) -> None:
        if event.panel.id == "findings":
            self.query_one("#fix", Panel).rebuild()

    def list_widget(self) -> Widget:
        return self.query_one("#gpus")

    def filter_changed(self, text: str) -> None:
        self._look(self.pick._replace(words=text))

    def action_order(self) -> None:
        names = list(ORDERS)
        self._look(self.pick._replace(order=names[(names.index(self.pick.order) + 1) % len(names)]))

    def action_mine(self) -> None:
        self._look(self.pick._replace(user=None if self.pick.user is not None else self.monitor.user))

    def _look(self, pick: Pick) -> None:
        self.monitor.pick = pick
        self.show_frame()

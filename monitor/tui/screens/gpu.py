"""One GPU: graphs and throttle timeline on the left, all readings on the right, its processes below."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.model.gpu import Gpu
from monitor.tui.frame import HostFrame
from monitor.tui.line_budget import Wants
from monitor.tui.panels import WIDE, PanelSpec, Side
from monitor.tui.screens.page import Page
from monitor.tui.text import Block, Line, Room, Span, line
from monitor.tui.views import gpu as view
from monitor.tui.views import processes


class GpuScreen(Page):
    def __init__(self, host: str, uuid: str) -> None:
        super().__init__()
        self._host, self._uuid = host, uuid

    def panels(self) -> Sequence[PanelSpec]:
        return (
            PanelSpec("summary", self._title, self._title_wants, focusable=False, classes="-still"),
            PanelSpec("main", self._main, side=Side("side", self._side)),
            PanelSpec("processes", self._processes, self._processes_want),
        )

    @property
    def _found(self) -> tuple[HostFrame, Gpu] | None:
        return self.frame.gpu(self._host, self._uuid)

    def show_frame(self) -> None:
        found = self._found
        self.title_text = f"GPU {found[1].index}" if found else "GPU"
        super().show_frame()

    def _title_wants(self, screen: Room) -> Wants:
        found = self._found
        return Wants((4 if found and found[1].state != "ok" else 3,))

    def _processes_want(self, screen: Room) -> Wants:
        found = self._found
        count = len(found[1].processes) if found else 0
        return Wants((min(1 + max(1, count), max(2, screen.height // 4)),))

    def _processes(self, room: Room) -> Block:
        return processes.table(self.frame, room, self.monitor.order, self._uuid)

    def _title(self, room: Room) -> Block:
        found = self._found
        if found is None:
            return Block(rows=(line(Span("   this GPU is no longer reported", "alarm")),))
        return Block(rows=tuple(view.title(*found, room)))

    def _main(self, room: Room) -> Block:
        found = self._found
        if found is None:
            return Block()
        tall = 4 if room.height > 34 else 3 if room.height > 24 else 2
        lines = [*view.graphs(*found, room, tall), *view.throttle(*found, room)]
        if self.size.width < WIDE:
            lines += view.readings(*found, room)
        return self._aged(lines)

    def _side(self, room: Room) -> Block:
        found = self._found
        return self._aged(view.readings(*found, room)) if found else Block()

    def _aged(self, lines: list[Line]) -> Block:
        found = self._found
        fresh = found is not None and found[0].current and found[1].state == "ok"
        return Block(rows=tuple(lines if fresh else (made.dimmed() for made in lines)))

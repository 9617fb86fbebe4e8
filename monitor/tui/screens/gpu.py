"""One GPU: graphs and throttle timeline at the left, all readings at the right, its processes below."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal
from textual.widget import Widget

from monitor.tui.screens.page import Page, set_height
from monitor.tui.text import Block, Line, Span, line
from monitor.tui.views import gpu as view
from monitor.tui.views import processes
from monitor.tui.widgets.panel import Panel, Room

SPLIT = 110


class GpuScreen(Page):
    def __init__(self, host: str, uuid: str) -> None:
        super().__init__()
        self._host, self._uuid = host, uuid

    def body(self) -> Iterable[Widget]:
        yield Panel(self._title, id="summary", focusable=False)
        with Horizontal(id="columns"):
            yield Panel(self._main, id="main")
            yield Panel(self._side, id="side")
        yield Panel(
            lambda room: processes.table(self.frame, room, self.monitor.order, self._uuid), id="processes"
        )

    def on_mount(self) -> None:
        self.query_one("#main").focus()

    def share_room(self) -> None:
        if not self.query("#summary"):
            return
        found = self.frame.gpu(self._host, self._uuid)
        self.crumb = f"GPU {found[1].index}" if found else "GPU"
        set_height(self.query_one("#summary"), 4 if found and found[1].state != "ok" else 3)
        count = len(found[1].processes) if found else 0
        set_height(self.query_one("#processes"), min(1 + max(1, count), max(2, self.size.height // 4)))

    def _title(self, room: Room) -> Block:
        found = self.frame.gpu(self._host, self._uuid)
        if found is None:
            return Block(rows=(line(Span("   this GPU is no longer reported", "alarm")),))
        return Block(rows=tuple(view.title(*found, room)))

    def _main(self, room: Room) -> Block:
        found = self.frame.gpu(self._host, self._uuid)
        if found is None:
            return Block()
        tall = 4 if room.height > 34 else 3 if room.height > 24 else 2
        lines = [*view.graphs(*found, room, tall), *view.throttle(*found, room)]
        if self.size.width < SPLIT:
            lines += view.readings(*found, room)
        return self._aged(lines)

    def _side(self, room: Room) -> Block:
        found = self.frame.gpu(self._host, self._uuid)
        return self._aged(view.readings(*found, room)) if found else Block()

    def _aged(self, lines: list[Line]) -> Block:
        found = self.frame.gpu(self._host, self._uuid)
        fresh = found is not None and found[0].current and found[1].state == "ok"
        return Block(rows=tuple(lines if fresh else (made.dimmed() for made in lines)))

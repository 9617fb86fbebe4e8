"""The first screen: is this GPU well used, and if not, why?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from monitor.tui.frame import Frame
from monitor.tui.screens.page import Page, set_height
from monitor.tui.text import Block
from monitor.tui.views import findings, gpus, processes, remedy, runs, top
from monitor.tui.views.card import CARD
from monitor.tui.widgets.panel import Panel, Room

WIDE = 110
TALL = 30
CARD_MOST = 11


class Plan(NamedTuple):
    """Lines for each part of the screen."""

    answer: int
    gpus: int
    runs: int
    advice: int
    processes: int
    airy: bool
    """True when a blank line between the parts fits."""


def plan(frame: Frame, width: int, height: int, *, show_processes: bool = True) -> Plan:
    """Who gets how many lines. GPUs, runs and findings first; processes take what is left."""
    answer = 2
    room = height - answer
    count = {"g": len(list(frame.gpus())), "r": len(list(frame.runs())), "f": len(list(frame.findings()))}
    down = len(top.silent_hosts(frame))
    runs_want = 1 + max(1, min(count["r"], 8 if room > 30 else 4))
    advice_want = 1 + max(1, min(count["f"], 6 if room > 30 else 4))
    if beside(frame, width, height):
        advice_want = max(advice_want, min(17, room // 3 + 2))
    gpu_lines = _gpu_lines(count["g"], room - runs_want - advice_want - down, width) + down
    gap = 1 if gpu_lines + runs_want + advice_want + 3 <= room else 0
    left = room - gpu_lines - runs_want - advice_want - 3 * gap
    if left < 0:
        runs_want = max(2, runs_want + left)
        left = room - gpu_lines - runs_want - advice_want
    if 0 < count["g"] <= 4 and gpu_lines >= count["g"] * CARD and left > 8:
        taller = min(CARD_MOST - CARD, (left - 8) // count["g"])
        gpu_lines, left = gpu_lines + taller * count["g"], left - taller * count["g"]
    process_lines = left if left >= 4 and show_processes else 0
    advice = max(2, advice_want + (left if not process_lines else 0))
    return Plan(answer, gpu_lines, runs_want, advice, process_lines, bool(gap))


def beside(frame: Frame, width: int, height: int) -> bool:
    """True when the fix of a finding has room next to the list."""
    return width >= WIDE and height >= TALL and any(f.remedy.summary for _, f in frame.findings())


def _gpu_lines(count: int, room: int, width: int) -> int:
    if count == 0:
        return 2
    if count <= 4 and count * CARD <= room:
        return count * CARD
    if 1 + count <= room or width < 76:
        return min(1 + count, max(3, room))
    return 1 + (count + 1) // 2


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
            yield Panel(lambda room: findings.table(self.frame, room), id="findings", classes="keeps-cursor")
            yield Panel(self._fix, id="fix", focusable=False)
        yield Panel(lambda room: processes.table(self.frame, room, self.monitor.order), id="processes")

    def on_mount(self) -> None:
        self.query_one("#gpus").focus()

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

"""One finding: evidence and reason on the left, the change and its gain on the right."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from monitor.model.errors import UserError
from monitor.model.finding import Finding
from monitor.store.ledger import Entry
from monitor.tui.frame import HostFrame
from monitor.tui.panels import WIDE, PanelSpec, Side
from monitor.tui.screens.page import Page
from monitor.tui.text import Block, Line, Room, Span, line
from monitor.tui.views import finding as view
from monitor.tui.views import findings, run, run_graphs


class FindingScreen(Page):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,c", "copy", "Copy fix", tooltip="Copy the change to the clipboard"),
        Binding("r", "run", "Run", tooltip="Open the run it is about"),
    ]

    def __init__(self, key: Hashable) -> None:
        super().__init__()
        self._key = key
        self._seen: tuple[HostFrame, Finding] | None = None
        self._gone = False
        self._ledger: list[Entry] = []
        self.title_text = str(key[2]) if isinstance(key, tuple) else ""

    def found(self) -> tuple[HostFrame, Finding] | None:
        now = findings.lookup(self.frame, self._key)
        self._gone = now is None
        self._seen = now or self._seen
        return self._seen

    def panels(self) -> Sequence[PanelSpec]:
        return (PanelSpec("main", self._main, side=Side("side", self._side)),)

    def on_mount(self) -> None:
        found = self.found()
        if found is not None:
            self._ask_ledger(found[1])

    def _main(self, room: Room) -> Block:
        found = self.found()
        if found is None:
            return Block(rows=(line(Span("   this finding is gone", "dim")),))
        host, finding = found
        lines = view.about(self.frame, host, finding, room)
        if self._gone:
            lines.insert(0, line(Span(" ✓ no longer found: its cause is gone, or its run has ended", "good")))
        if self.size.width < WIDE:
            lines += self._fix(finding, room)
        about = self.frame.run(host.label, finding.run) if finding.run else None
        if about is not None:
            lines += [*run.phases(about[1], room), *run_graphs.waterfall(about[1], room, 8)]
        return Block(rows=tuple(lines if host.current else (made.dimmed() for made in lines)))

    def _side(self, room: Room) -> Block:
        found = self.found()
        return Block(rows=tuple(self._fix(found[1], room))) if found else Block()

    def _fix(self, finding: Finding, room: Room) -> list[Line]:
        return [*view.change(finding, room), *view.realised(self._ledger, room)]

    @work(thread=True, exclusive=True)
    def _ask_ledger(self, finding: Finding) -> None:
        try:
            self._ledger = self.monitor.archive.ledger(finding)
        except UserError:
            return
        self.app.call_from_thread(self.show_frame)

    def action_copy(self) -> None:
        found = self.found()
        if found is None or not found[1].remedy.change:
            self.notify("there is no change to copy", severity="warning")
            return
        self.app.copy_to_clipboard(found[1].remedy.change)
        self.notify("the change was copied to the clipboard")

    def action_run(self) -> None:
        found = self.found()
        if found and found[1].run:
            self.open(("run", found[0].label, found[1].run))

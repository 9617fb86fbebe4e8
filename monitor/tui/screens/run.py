"""One run, live or past."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal
from textual.widget import Widget

from monitor.snapshot import Finding, Run
from monitor.tui.screens.page import Page, set_height
from monitor.tui.text import Block, Line, Span, line
from monitor.tui.views import findings, rundetail
from monitor.tui.views import run as view
from monitor.tui.widgets.panel import Panel, Room

SPLIT = 110


class RunScreen(Page):
    """Figures on top; graphs at the left; findings, ranks and configuration at the right or below."""

    def __init__(
        self, host: str, run_id: str, past: Run | None = None, found: tuple[Finding, ...] = ()
    ) -> None:
        super().__init__()
        self._host, self._run_id, self._past, self._past_findings = host, run_id, past, found
        self.crumb = past.name if past else run_id

    @property
    def run(self) -> Run | None:
        found = self.frame.run(self._host, self._run_id)
        if found is not None:
            self._past = found[1]
        return self._past

    @property
    def current(self) -> bool:
        found = self.frame.run(self._host, self._run_id)
        return found is None or found[0].current

    def body(self) -> Iterable[Widget]:
        yield Panel(self._summary, id="summary", focusable=False)
        with Horizontal(id="columns"):
            yield Panel(self._main, id="main")
            yield Panel(self._side, id="side")

    def on_mount(self) -> None:
        self.query_one("#main").focus()

    def share_room(self) -> None:
        if not self.query("#summary"):
            return
        run = self.run
        self.crumb = run.name if run else self._run_id
        lines = 3 if self.size.width >= 130 else 4
        set_height(self.query_one("#summary"), lines + (run is not None and run.state == "stalled"))

    def _summary(self, room: Room) -> Block:
        run = self.run
        if run is None:
            return Block(rows=(line(Span("   this run is no longer known to the daemon", "dim")),))
        return self._aged(view.summary(run, self.frame.now.wall, room, self._about()))

    def _about(self) -> tuple[Finding, ...]:
        found = self.frame.run(self._host, self._run_id)
        return found[0].snapshot.findings if found and found[0].snapshot else self._past_findings

    def _main(self, room: Room) -> Block:
        run = self.run
        if run is None:
            return Block()
        tall = room.height > 34
        lines = [
            *view.waterfall(run, room, 10 if tall else 6),
            *view.phases(run, room),
            *view.graphs(run, room, 4 if tall else 3),
        ]
        if self.size.width < SPLIT:
            lines = [*self._found(room), *lines, *self._details(run, room)]
        return self._aged(lines)

    def _side(self, room: Room) -> Block:
        run = self.run
        return Block() if run is None else self._aged([*self._found(room), *self._details(run, room)])

    def _found(self, room: Room) -> list[Line]:
        live = self.frame.run(self._host, self._run_id)
        made = (
            findings.table(self.frame, room, self._run_id)
            if live
            else findings.recorded(self._past_findings, room)
        )
        return [Line(head.spans) for head in made.head] + [*made.rows, line()]

    def _details(self, run: Run, room: Room) -> list[Line]:
        parts = (
            rundetail.ranks,
            rundetail.stalls,
            rundetail.loader,
            rundetail.hotspots,
            rundetail.scalars,
            rundetail.configuration,
        )
        return [made for part in parts for made in part(run, room)]

    def _aged(self, lines: list[Line]) -> Block:
        return Block(rows=tuple(lines if self.current else (made.dimmed() for made in lines)))

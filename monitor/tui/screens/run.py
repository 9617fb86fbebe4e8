"""One run, live or past."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.model.finding import Finding
from monitor.model.run import Run
from monitor.tui.line_budget import Wants
from monitor.tui.panels import WIDE, PanelSpec, Side
from monitor.tui.screens.page import Page
from monitor.tui.text import Block, Line, Room, Span, line
from monitor.tui.views import findings, run_details, run_graphs, run_nodes
from monitor.tui.views import run as view


class RunScreen(Page):
    """Figures at the top; graphs on the left; findings, ranks and configuration on the right or below."""

    def __init__(
        self, host: str, run_id: str, past: Run | None = None, found: tuple[Finding, ...] = ()
    ) -> None:
        super().__init__()
        self._host, self._run_id, self._past, self._past_findings = host, run_id, past, found
        self.title_text = past.name if past else run_id

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

    def panels(self) -> Sequence[PanelSpec]:
        return (
            PanelSpec("summary", self._summary, self._summary_wants, focusable=False, classes="-still"),
            PanelSpec("main", self._main, side=Side("side", self._side)),
        )

    def show_frame(self) -> None:
        run = self.run
        self.title_text = run.name if run else self._run_id
        super().show_frame()

    def _summary_wants(self, screen: Room) -> Wants:
        run = self.run
        lines = 3 if screen.width >= 130 else 4
        return Wants((lines + (run is not None and run.state == "stalled"),))

    def _summary(self, room: Room) -> Block:
        run = self.run
        if run is None:
            return Block(rows=(line(Span("   this run is no longer known to the daemon", "dim")),))
        return self._aged(view.summary(run, room))

    def _main(self, room: Room) -> Block:
        run = self.run
        if run is None:
            return Block()
        tall = room.height > 34
        lines = [
            *run_graphs.waterfall(run, room, 10 if tall else 6),
            *view.phases(run, room),
            *run_graphs.graphs(run, room, 4 if tall else 3),
        ]
        if self.size.width < WIDE:
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
            run_nodes.nodes,
            run_details.ranks,
            run_details.stalls,
            run_details.loader,
            run_details.hotspots,
            run_details.scalars,
            run_details.configuration,
        )
        return [made for part in parts for made in part(run, room)]

    def _aged(self, lines: list[Line]) -> Block:
        return Block(rows=tuple(lines if self.current else (made.dimmed() for made in lines)))

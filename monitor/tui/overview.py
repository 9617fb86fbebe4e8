"""The panels of the first screen: is this GPU well used, and if not, why?"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from monitor.tui.frame import Frame
from monitor.tui.line_budget import Wants
from monitor.tui.panels import PanelSpec, Side
from monitor.tui.text import Block, Room
from monitor.tui.views import answer, finding, findings, gpus, host, processes, runs
from monitor.tui.views.processes import Order


class Source(Protocol):
    """What the panels are drawn from."""

    @property
    def frame(self) -> Frame: ...
    @property
    def picked(self) -> Frame: ...
    @property
    def order(self) -> Order: ...
    @property
    def shows_processes(self) -> bool: ...
    @property
    def shows_fix(self) -> bool: ...
    @property
    def chosen_finding(self) -> Hashable: ...


def overview_panels(source: Source) -> tuple[PanelSpec, ...]:
    """All panels of the overview, top to bottom. To add one, write a view (`wants` and a function that builds
    it) and add a line here."""

    def of_frame(
        build: Callable[[Frame, Room], Block], wants: Callable[[Frame, Room], Wants]
    ) -> tuple[Callable[[Room], Block], Callable[[Room], Wants]]:
        return lambda room: build(source.picked, room), lambda room: wants(source.picked, room)

    def list_findings(frame: Frame, room: Room) -> Block:
        return findings.table(frame, room, fix=not source.shows_fix)

    def list_processes(frame: Frame, room: Room) -> Block:
        return processes.table(frame, room, source.order, brief=True)

    def wanted_by_processes(frame: Frame, room: Room) -> Wants:
        return processes.wants(frame, room, shown=source.shows_processes)

    def fix(room: Room) -> Block:
        found = findings.lookup(source.picked, source.chosen_finding) or next(source.picked.findings(), None)
        return finding.preview(found[1], room) if found else Block()

    def tell(room: Room) -> Block:
        return answer.block(source.frame, room)

    def wanted_by_answer(room: Room) -> Wants:
        return answer.wants(source.frame, room)

    def fix_fits(room: Room) -> bool:
        return findings.fix_fits(source.picked, room)

    beside = Side("fix", fix, fix_fits, findings.BESIDE, focusable=False)
    return (
        PanelSpec("answer", tell, wanted_by_answer, focusable=False, classes="-still"),
        PanelSpec("gpus", *of_frame(gpus.table, gpus.wants)),
        PanelSpec("runs", *of_frame(runs.table, runs.wants)),
        PanelSpec("findings", *of_frame(list_findings, findings.wants), classes="keeps-cursor", side=beside),
        PanelSpec("host", *of_frame(host.table, host.wants), focusable=False, classes="-still"),
        PanelSpec("processes", *of_frame(list_processes, wanted_by_processes)),
    )

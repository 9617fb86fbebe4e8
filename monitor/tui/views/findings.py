"""Findings: one line each, ranked as the engine ranked them, with the predicted gain."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from monitor.snapshot import Finding
from monitor.tui import format as show
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.table import Column, Layout, chosen, heading, row
from monitor.tui.text import Block, Cell, Line, Span, line
from monitor.tui.views.marks import SEVERITY
from monitor.tui.widgets.panel import Room

COLUMNS = (
    Column("title", "Findings", 44, grow=3, most=120),
    Column("gain", "predicted gain", 17),
    Column("who", "concerns", 15, drop=1, most=30),
    Column("fix", "fix", 28, drop=2, grow=2, most=60),
    Column("id", "rule", 18, drop=3),
    Column("since", "for", 4, ">", drop=4),
)


def table(frame: Frame, room: Room, run: str | None = None, *, fix: bool = True) -> Block:
    """All findings, or those about one run; without the column of fixes when one stands beside."""
    entries = [(h, f) for h, f in frame.findings(past=run is not None) if run is None or f.run == run]
    if not entries:
        return Block((line(Span(" Findings", "title"), width=room.width),), (_none(frame, room),))
    gap = 1 if room.width < 100 else 2
    columns = [column for column in COLUMNS if fix or column.name != "fix"]
    if room.width >= 90:
        columns[0] = replace(columns[0], width=64)
    layout = chosen(columns, room.width - 2, gap)
    return Block((heading(layout, gap=gap, lead=1),), tuple(_rows(frame, layout, entries, gap)))


def _none(frame: Frame, room: Room) -> Line:
    live = any(run.state == "running" for _, run in frame.runs())
    text = "   nothing found so far; rules need some steps first" if live else "   none without a run"
    return line(Span(text, "dim"), width=room.width)


def key_of(host: HostFrame, finding: Finding) -> Hashable:
    return ("finding", host.label, finding.id, finding.run, finding.rank, finding.gpu)


def lookup(frame: Frame, key: Hashable) -> tuple[HostFrame, Finding] | None:
    return next(((h, f) for h, f in frame.findings(past=True) if key_of(h, f) == key), None)


def _rows(
    frame: Frame, layout: Layout, entries: Iterable[tuple[HostFrame, Finding]], gap: int
) -> Iterable[Line]:
    for host, finding in entries:
        made = row(layout, _cells(frame, host, finding), key=key_of(host, finding), gap=gap, lead=" ")
        yield made if host.current else made.dimmed()


def _cells(frame: Frame, host: HostFrame, finding: Finding) -> dict[str, Cell]:
    mark = SEVERITY[finding.severity]
    strong = "strong" if finding.severity in ("critical", "warning") else ""
    return {
        "title": [mark.span, Span(f" {finding.title}", strong)],
        "fix": Span(finding.remedy.summary, "dim"),
        "gain": Span(gain(finding), "gain" if finding.speedup else "dim"),
        "who": Span(concerns(frame, host, finding), "dim"),
        "id": Span(finding.id, "dim"),
        "since": Span(show.age(frame.now.wall - finding.since) if finding.since else "", "dim"),
    }


def recorded(found: Iterable[Finding], room: Room) -> Block:
    """The findings a past run ended with: to read, not to open."""
    gap = 1 if room.width < 100 else 2
    layout = chosen([c for c in COLUMNS if c.name in ("title", "gain", "fix")], room.width - 2, gap)
    rows = []
    for finding in found:
        mark = SEVERITY[finding.severity]
        cells: dict[str, Cell] = {
            "gain": Span(gain(finding), "gain"),
            "fix": Span(finding.remedy.summary, "dim"),
        }
        cells["title"] = [mark.span, Span(f" {finding.title}", "strong")]
        rows.append(row(layout, cells, gap=gap, lead=" "))
    return Block(
        (heading(layout, gap=gap, lead=1),), tuple(rows) or (line(Span("   none were recorded", "dim")),)
    )


def gain(finding: Finding) -> str:
    speed = finding.speedup
    return show.gain(speed.low, speed.likely, speed.high) if speed else ""


def concerns(frame: Frame, host: HostFrame, finding: Finding) -> str:
    """The run, rank or GPU a finding is about, by the names people know."""
    assert host.snapshot is not None
    run = next((r.name for r in host.snapshot.runs if r.id == finding.run), finding.run)
    gpu = next((f"GPU {g.index}" for g in host.snapshot.gpus if g.uuid == finding.gpu), None)
    who = f"{run} r{finding.rank}" if run and finding.rank is not None else run or gpu or "this host"
    return f"{host.label}: {who}" if frame.several else who

"""Training runs: a row each, with where the step goes."""

from __future__ import annotations

from collections.abc import Hashable

from monitor.snapshot import Rank, Run, Snapshot
from monitor.tui import format as show
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.table import Column, Layout, chosen, heading, row
from monitor.tui.text import Block, Cell, Line, Span, clip, line
from monitor.tui.views.marks import run_mark, starving
from monitor.tui.widgets.graph import phase_bar
from monitor.tui.widgets.panel import Room

COLUMNS = (
    Column("name", "Runs", 14, grow=1, most=30),
    Column("host", "host", 10, drop=9),
    Column("ranks", "ranks", 5, ">", drop=4),
    Column("step", "step", 6, ">", drop=3),
    Column("its", "it/s", 5, ">"),
    Column("samples", "samples/s", 9, ">", drop=2),
    Column("p50", "p50", 8, ">", drop=7),
    Column("p95", "p95", 8, ">", drop=8),
    Column("trend", "trend", 6, ">", drop=1),
    Column("phases", "where the step goes", 24, grow=3, most=90),
    Column("starved", "starved", 7, ">"),
    Column("now", "now in", 16, drop=10),
)


def table(frame: Frame, room: Room) -> Block:
    """Every run of every host; without one, how to start one."""
    entries = list(frame.runs())
    if not entries:
        head = line(Span(" Runs", "title"), width=room.width)
        hint = "   no training run — start one with: gpumon run -- python train.py"
        return Block((head,), (line(Span(hint, "dim"), width=room.width),))
    gap = 1 if room.width < 100 else 2
    columns = [c for c in COLUMNS if c.name != "host" or frame.several]
    layout = chosen(columns, room.width - 2, gap)
    rows = [_row(layout, host, run, room.plain, gap) for host, run in entries]
    return Block((heading(layout, gap=gap, lead=1),), tuple(rows))


def key_of(host: HostFrame, run: Run) -> Hashable:
    return ("run", host.label, run.id)


def _row(layout: Layout, host: HostFrame, run: Run, plain: bool, gap: int) -> Line:
    assert host.snapshot is not None
    cells = _cells(host.snapshot, run)
    cells["host"] = clip(host.label, 10)
    cells["phases"] = bar_of(run, layout["phases"][1], plain)
    made = row(layout, cells, key=key_of(host, run), gap=gap, lead=" ")
    return made if host.current else made.dimmed()


def bar_of(run: Run, width: int, plain: bool) -> list[Span]:
    """The phase bar; a run that stands still says so instead."""
    stuck = hanging(run)
    if run.state == "stalled" and stuck is not None:
        text = f"stands in {stuck.live_phase} for {show.duration(stuck.live_seconds)} (rank {stuck.rank})"
        return [Span(clip(text, width), "alarm")]
    return phase_bar({phase.name: phase.share for phase in run.phases}, width, plain=plain)


def hanging(run: Run) -> Rank | None:
    """The rank that has been longest in its present phase."""
    waiting = [rank for rank in run.ranks if rank.live_phase and rank.live_seconds is not None]
    return max(waiting, key=lambda rank: rank.live_seconds or 0.0, default=None)


def _cells(snapshot: Snapshot, run: Run) -> dict[str, Cell]:
    mark = run_mark(run, snapshot.findings)
    stuck = hanging(run)
    alive = run.state in ("running", "stalled")
    return {
        "name": [mark.span, Span(f" {run.name}", "strong" if alive else "dim")],
        "ranks": f"{len(run.ranks)}/{run.world_size}",
        "step": show.count(run.ranks[0].steps if run.ranks else run.steps),
        "its": show.number(run.iterations_per_second),
        "samples": show.number(run.samples_per_second),
        "p50": show.seconds(run.step.p50),
        "p95": show.seconds(run.step.p95),
        "trend": trend(run.trend_ratio),
        "starved": Span(show.percent(run.starved_ratio), "alarm" if starving(run) else ""),
        "now": Span(
            f"{stuck.live_phase} {show.seconds(stuck.live_seconds)}" if stuck and alive else run.state, "dim"
        ),
    }


def trend(ratio: float | None) -> Span:
    """Throughput against the run's own best: a fall is marked with an arrow, not by colour alone."""
    if ratio is None:
        return Span(show.ABSENT)
    if ratio >= 0.9:
        return Span(f"→{ratio * 100:.0f}%")
    return Span(f"↓{ratio * 100:.0f}%", "alarm" if ratio < 0.6 else "warn")

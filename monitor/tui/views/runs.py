"""Training runs: one row each, with where the step goes."""

from __future__ import annotations

from collections.abc import Hashable

from monitor.language import said, word
from monitor.model import units
from monitor.model.run import Run, Stuck, Trend
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.line_budget import TALL, Wants
from monitor.tui.table import Column, Layout, chosen, gap_for, heading, occupied, row
from monitor.tui.text import Block, Cell, Line, Room, Span, cells, clip, line
from monitor.tui.views.parts import now_in
from monitor.tui.views.symbols import RUN, TREND
from monitor.tui.widgets.graph import phase_bar

COLUMNS = (
    Column("name", "Runs", 18, grow=1, most=30),
    Column("host", "host", 10, drop=9),
    Column("user", "user", 8, drop=11),
    Column("ranks", "ranks", 5, ">", drop=5),
    Column("step", "step", 6, ">", drop=4),
    Column("its", "it/s", 5, ">"),
    Column("samples", "samples/s", 9, ">", drop=6),
    Column("p50", "p50", 8, ">", drop=7),
    Column("p95", "p95", 8, ">", drop=8),
    Column("trend", "trend", 6, ">", drop=3),
    Column("phases", "where the step goes", 22, grow=3, most=90),
    Column("starved", "starved", 7, ">", drop=1),
    Column("now", "now in", 16, drop=10),
)


def wants(frame: Frame, room: Room) -> Wants:
    count = len(list(frame.runs()))
    shown = min(count, 8 if room.height >= TALL else 4)
    return Wants(
        (1 + max(1, shown), 1 + max(1, min(shown, 2))),
        most=1 + count if room.height >= TALL else 0,
        squeezed=2,
        spaced=True,
    )


def table(frame: Frame, room: Room) -> Block:
    """Every run of every host; if there is none, how to start one."""
    entries = list(frame.runs())
    if not entries:
        head = line(Span(f" {word('Runs')}", "title"), width=room.width)
        return Block((head,), (line(Span(_none(frame), "dim"), width=room.width),))
    gap = gap_for(room.width)
    cells = [_cells(*entry) for entry in entries]
    columns = [column for column in COLUMNS if column.name != "host" or frame.several]
    layout = chosen(occupied(columns, cells), room.width - 2, gap)
    rows = [_row(layout, *entry, made, room.plain, gap) for entry, made in zip(entries, cells, strict=True)]
    return Block((heading(layout, gap=gap, lead=1),), tuple(rows))


def _none(frame: Frame) -> str:
    if frame.narrowed:
        return "   no run matches"
    return "   no training run — start one with: gpumon run -- python train.py"


def key_of(host: HostFrame, run: Run) -> Hashable:
    return ("run", host.label, run.id)


def _row(layout: Layout, host: HostFrame, run: Run, cells: dict[str, Cell], plain: bool, gap: int) -> Line:
    cells["phases"] = _phases(run, layout["phases"][1], plain)
    made = row(layout, cells, key=key_of(host, run), gap=gap, lead=" ")
    return made if host.current else made.dimmed()


def _phases(run: Run, width: int, plain: bool) -> list[Span]:
    """The phase bar; a stuck run says so instead, and a finished one says how it ended."""
    if run.state == "stalled" and run.current is not None:
        return [Span(_stuck(run.current, width), "alarm")]
    if not run.live:
        why = f": {run.error}" if run.error else ""
        text = f"{RUN[run.state].word}{why} after {units.duration(run.elapsed_seconds)}"
        return [Span(text, RUN[run.state].role)]
    return phase_bar({phase.name: phase.share for phase in run.phases}, width, plain=plain)


def _stuck(current: Stuck, width: int) -> str:
    """Where and for how long, as precisely as there is room for."""
    where, seconds = f"stuck in {current.phase}", current.seconds
    short = f"{said(where)} {units.age(seconds)}"
    texts = (
        f"{where} for {units.duration(seconds)} (rank {current.rank})",
        f"{where} for {units.duration(seconds)}",
    )
    return next((text for text in map(said, texts) if cells(text) <= width), clip(short, width))


def _cells(host: HostFrame, run: Run) -> dict[str, Cell]:
    """All cells but the phase bar, which needs to know its width."""
    several = run.world_size != 1
    cells: dict[str, Cell] = {
        "host": clip(host.label, 10),
        "user": Span(clip(run.user or "", 8), "dim"),
        "name": [RUN[run.condition].span, Span(f" {run.name}", "strong" if run.live else "dim")],
        "ranks": f"{len(run.ranks)}/{run.world_size}" if several else "",
        "step": units.count(run.ranks[0].steps if run.ranks else run.steps),
    }
    over: dict[str, Cell] = dict.fromkeys(SPEED, "")
    return cells | (_speed(run) if run.live else over)


SPEED = ("its", "samples", "p50", "p95", "trend", "starved", "now")


def _speed(run: Run) -> dict[str, Cell]:
    """Current figures; a finished run has none."""
    return {
        "its": units.number(run.iterations_per_second),
        "samples": units.number(run.samples_per_second),
        "p50": units.seconds(run.step.p50),
        "p95": units.seconds(run.step.p95),
        "trend": trend_span(run.trend, run.trend_ratio),
        "starved": Span(units.tight_percent(run.starved_ratio), "alarm" if run.starving else ""),
        "now": Span(_now_in(run), "dim"),
    }


def _now_in(run: Run) -> str:
    return (
        word(run.state) if run.current is None else now_in(run.state, run.current.phase, run.current.seconds)
    )


def trend_span(trend: Trend | None, ratio: float | None) -> Span:
    """Throughput against the run's own best; a fall is marked by an arrow, not by colour alone."""
    symbol = TREND[trend]
    return Span(f"{symbol.char}{units.against(ratio)}", symbol.role)

"""One run: its figures, and where its step goes."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.language import word
from monitor.model import units
from monitor.model.run import Phase, Run
from monitor.tui.table import says
from monitor.tui.text import Cell, Line, Room, Span, clip, fit, line, spans, width_of
from monitor.tui.views.parts import section
from monitor.tui.views.runs import trend_span
from monitor.tui.views.symbols import RUN
from monitor.tui.widgets.graph import letter, phase_bar, phase_order, role_of

PHASE_COLUMNS = (("phase", 14), ("share", 7), ("mean", 11), ("p50", 11), ("p95", 11))


def summary(run: Run, room: Room) -> list[Line]:
    """Which run it is, how fast it goes, and what it hangs in, if it does."""
    symbol = RUN[run.condition]
    head = line(
        Span(f" {symbol.char} ", symbol.role),
        Span(run.name, "strong"),
        Span("  " + " · ".join(_identity(run)), "dim"),
        width=room.width,
    )
    lines = [head, *_flow(_figures(run), room)]
    if run.state == "stalled" and run.current is not None:
        since, usual = units.duration(run.current.seconds), units.seconds(run.step.p50)
        text = f"rank {run.current.rank} stuck in {run.current.phase} for {since}; usual step {usual}"
        lines.append(line(Span(clip(f" ▲ {text}", room.width - 3), "alarm")))
    return lines


def _identity(run: Run) -> list[str]:
    lasted = units.duration(run.elapsed_seconds)
    parts = (
        f"hung, started {lasted} ago" if run.state == "stalled" else f"{word(run.state)} {lasted}",
        run.user,
        " ".join((run.script or run.command or "").split()),
        f"git {run.git_commit}" if run.git_commit else None,
        run.container,
        run.pod,
        f"slurm {run.slurm_job}" if run.slurm_job else None,
    )
    return [part for part in parts if part]


def _flow(pairs: Sequence[tuple[str, Cell]], room: Room) -> list[Line]:
    """Names and values that are known in sequence, on at most two lines."""
    lines: list[list[Span]] = [[Span("   ")]]
    for name, value in pairs:
        if not says(value):
            continue
        cell = [Span(f"{word(name)} ", "dim"), *spans(value, "strong"), Span("   ")]
        if width_of(lines[-1]) + width_of(cell) - 2 > room.width:
            lines.append([Span("   ")])
        lines[-1] += cell
    return [line(parts, width=room.width) for parts in lines[:2]]


def _figures(run: Run) -> list[tuple[str, Cell]]:
    first = run.ranks[0] if run.ranks else None
    tokens: list[tuple[str, Cell]] = (
        [("tokens/s", units.number(run.tokens_per_second))] if run.tokens_per_second else []
    )
    return [
        ("step", units.count(first.steps if first else run.steps)),
        ("it/s", units.number(run.iterations_per_second)),
        ("samples/s", units.number(run.samples_per_second)),
        *tokens,
        ("p50", units.seconds(run.step.p50)),
        ("p95", units.seconds(run.step.p95)),
        ("starved", Span(units.percent(run.starved_ratio), "alarm" if run.starving else "strong")),
        ("trend", trend_span(run.trend, run.trend_ratio)),
        ("loss", units.number(first.loss if first else None)),
        ("epoch", units.count(first.epoch if first else None)),
        ("ranks", f"{len(run.ranks)}/{run.world_size}"),
        ("gpumon's cost", units.small_percent(first.overhead_ratio if first else None)),
    ]


def phases(run: Run, room: Room) -> list[Line]:
    """The step as one bar, and every phase with its times."""
    shares = {phase.name: phase.share for phase in run.phases}
    known = {phase.name: phase for phase in run.phases}
    titles = (
        fit(Span(name, "head"), width, "<" if name == "phase" else ">") for name, width in PHASE_COLUMNS
    )
    return [
        section("Where the step goes"),
        line("   ", *phase_bar(shares, room.width - 5, plain=room.plain)),
        line("   ", *titles),
        *(_phase_line(known[name], room) for name in phase_order(shares)),
        line(),
    ]


def _phase_line(phase: Phase, room: Room) -> Line:
    swatch = Span("  ", role_of(phase.name)) if not room.plain else Span(letter(phase.name) + " ")
    times = (phase.mean_seconds, phase.p50_seconds, phase.p95_seconds)
    return line(
        "   ",
        swatch,
        " ",
        fit(word(phase.name), 11),
        fit(Span(units.tight_percent(phase.share), "strong"), 7, ">"),
        *(fit(units.seconds(value), 11, ">") for value in times),
    )

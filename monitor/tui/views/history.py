"""Live and past runs, and two of them compared."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.catalog.rows import RunRow
from monitor.comparison.compare_runs import Comparison, Side
from monitor.language import said, word
from monitor.model import units
from monitor.model.finding import Speedup
from monitor.tui.table import Column, chosen, gap_for, heading, occupied, row
from monitor.tui.text import Block, Cell, Line, Room, Span, clip, fit, line, wrap_spans
from monitor.tui.views.parts import section
from monitor.tui.views.runs import trend_span
from monitor.tui.views.symbols import RUN, Symbol
from monitor.tui.widgets.graph import bar, role_of

COLUMNS = (
    Column("mark", "", 1),
    Column("name", "History", 20, grow=1, most=34),
    Column("started", "started", 11),
    Column("lasted", "lasted", 11, ">", drop=3),
    Column("ranks", "ranks", 5, ">", drop=6),
    Column("steps", "steps", 6, ">", drop=5),
    Column("samples", "samples/s", 9, ">"),
    Column("its", "it/s", 6, ">", drop=7),
    Column("p50", "p50", 8, ">", drop=4),
    Column("trend", "trend", 6, ">", drop=2),
    Column("state", "state", 8),
    Column("user", "user", 9, drop=8),
    Column("script", "script", 14, drop=9, grow=1, most=30),
    Column("found", "findings", 22, drop=1, grow=2, most=60),
)


def table(rows: Sequence[RunRow], marked: Sequence[str], room: Room, note: str, text: str = "") -> Block:
    """A row for each run; the marked ones are A and B."""
    gap = gap_for(room.width)
    layout = chosen(occupied(COLUMNS, [_cells(one, [one.run]) for one in rows]), room.width - 2, gap)
    head = heading(layout, gap=gap, lead=1)
    shown = [one for one in rows if matches(one, text)]
    lines = [row(layout, _cells(one, marked), key=("past", one.run), gap=gap, lead=" ") for one in shown]
    empty = line(Span(f"   no run matches “{text}”" if rows else f"   {note}", "dim"), width=room.width)
    return Block((Line(head.spans),), tuple(lines) or (empty,))


def matches(one: RunRow, text: str) -> bool:
    where = " ".join(str(v) for v in (one.run, one.name, one.user, one.script, one.state) if v).lower()
    return all(word in where for word in text.lower().split())


def _cells(one: RunRow, marked: Sequence[str]) -> dict[str, Cell]:
    symbol = RUN.get(one.state, RUN["ended"])
    return {
        "mark": Span("AB"[marked.index(one.run)] if one.run in marked else " ", "accent"),
        "name": [symbol.span, Span(f" {one.name}", "strong")],
        "started": units.date(one.started),
        "lasted": units.duration(one.elapsed_seconds),
        "ranks": str(one.ranks),
        "steps": units.count(one.steps),
        "samples": units.number(one.samples_per_s),
        "its": units.number(one.iterations_per_s),
        "p50": units.seconds(one.step_p50_s),
        "trend": trend_span(one.trend, one.trend_ratio),
        "state": Span(one.state, symbol.role),
        "user": Span(one.user or units.ABSENT, "dim"),
        "script": Span((one.script or units.ABSENT).rpartition("/")[2], "dim"),
        "found": Span(
            ", ".join(name for name in one.findings if not name.startswith("healthy")) or "none", "dim"
        ),
    }


VERDICTS = {
    "faster": Symbol("●", "B is faster", "good"),
    "slower": Symbol("▲", "B is slower", "alarm"),
    "same": Symbol("○", "no difference beyond the noise", "dim"),
    "unsure": Symbol("◐", "not sure: the interval includes no change", "warn"),
}
INSIDE = {True: Span("✓ ", "good"), False: Span("◆ ", "warn"), None: Span("○ ", "dim")}
"""Whether the realised gain is within the predicted range."""


def comparison(found: Comparison, room: Room) -> list[Line]:
    """Is it faster, how sure is that, where does the time go now, and is the gain as predicted?"""
    symbol = VERDICTS[found.verdict]
    lines = [
        line(
            Span(f" {symbol.char} {symbol.word}  ", symbol.role),
            Span(_speedup(found), "gain" if found.verdict == "faster" else "strong"),
            Span(f"  {said(f'noise ±{units.percent(found.noise_floor)}')}", "dim"),
            width=room.width,
        )
    ]
    lines += [line(Span(f" ◆ {clip(text, room.width - 4)}", "warn")) for text in found.warnings]
    lines += [line(), *_sides(found.a, found.b, room), line(), *_phases(found, room)]
    return [*lines, *_realised(found, room)]


def _speedup(found: Comparison) -> str:
    if found.speedup is None:
        return "one side has no rate"
    if found.low is None or found.high is None:
        return f"{units.gain(found.speedup)} {found.unit}"
    return f"{units.gain_range(found.low, found.speedup, found.high)} {found.unit}"


FIGURES = (
    ("samples_per_second", "samples/s"), ("steps_per_second", "steps/s"), ("step_p50_seconds", "step p50"),
    ("step_p95_seconds", "step p95"), ("epoch_seconds", "epoch"), ("gpu_utilization_ratio", "GPU use"),
    ("starved_ratio", "starved"), ("device_memory_bytes", "GPU memory"), ("rss_bytes", "host memory"),
    ("stall_share", "in stalls"), ("steps", "steps"), ("seconds", "lasted"),
)  # fmt: skip


def _sides(a: Side, b: Side, room: Room) -> list[Line]:
    wide = max(16, min(30, (room.width - 20) // 2))
    head = line(
        "   ",
        fit("", 14),
        fit(Span(f"A  {clip(a.name, wide - 5)}", "title"), wide),
        fit(Span(f"B  {clip(b.name, wide - 5)}", "title"), wide),
    )
    ids = line("   ", fit("", 14), *(fit(Span(clip(side.run, wide - 2), "dim"), wide) for side in (a, b)))
    out = [head, ids]
    for field, name in FIGURES:
        one, two = getattr(a, field), getattr(b, field)
        if one is None and two is None:
            continue
        texts = (units.duration(v) if field == "seconds" else units.value_of(field, v) for v in (one, two))
        values = [made for text in texts for made in fit(Span(text, "strong"), wide)]
        out.append(line("   ", fit(Span(word(name), "dim"), 14), *values))
    return out


def _phases(found: Comparison, room: Room) -> list[Line]:
    """Seconds per step, A above B, on one scale."""
    if not found.phases:
        return []
    top = max(max(change.before_seconds, change.after_seconds) for change in found.phases) or 1.0
    width = max(8, min(40, room.width - 44))
    out = [section("Seconds a step, A above B")]
    for change in found.phases:
        for which, seconds in (("A", change.before_seconds), ("B", change.after_seconds)):
            name = word(change.name) if which == "A" else ""
            drawn = bar(seconds / top, width, role_of(change.name).replace("phase.", "ink."))
            out.append(
                line(
                    "   ",
                    fit(Span(name, "dim"), 13),
                    Span(f"{which} ", "dim"),
                    *drawn,
                    fit(Span(units.seconds(seconds), "strong"), 11, ">"),
                )
            )
    return [*out, line()]


def _realised(found: Comparison, room: Room) -> list[Line]:
    out = [section("Predicted and realised")]
    for item in found.realised:
        known = item.realised is not None
        got = f"realised {units.gain(item.realised)}" if known else f"no longer seen: {item.reason}"
        part = " (its share of several)" if item.shared and item.realised is not None else ""
        told = [
            INSIDE[item.inside],
            Span(item.title, "strong"),
            Span(f"  predicted {_gain(item.predicted)}, {got}{part}", "dim"),
        ]
        out += [line("   ", made) for made in wrap_spans(told, room.width - 4, hang=2)]
    if found.predicted_together is not None and len(found.realised) > 1:
        out.append(line("   ", Span(f"together {_gain(found.predicted_together)}", "dim")))
    out += [line("   ", Span(f"still there: {name}", "dim")) for name in found.remaining]
    out += [line("   ", Span(f"new in B: {name}", "warn")) for name in found.new]
    return out if len(out) > 1 else [*out, line(Span("   no finding went away between A and B", "dim"))]


def _gain(speed: Speedup | None) -> str:
    return units.gain_range(speed.low, speed.likely, speed.high) if speed else "nothing"

"""Runs live and past, and two of them compared."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.compare import Comparison, Side
from monitor.runs.listing import RunRow
from monitor.snapshot import Speedup
from monitor.tui import format as show
from monitor.tui.table import Column, chosen, heading, row
from monitor.tui.text import Block, Cell, Line, Span, clip, fit, line
from monitor.tui.views.marks import RUN
from monitor.tui.views.remedy import section
from monitor.tui.views.runs import trend
from monitor.tui.widgets.graph import bar, role_of
from monitor.tui.widgets.panel import Room

COLUMNS = (
    Column("mark", "", 1),
    Column("name", "History", 20, grow=1, most=34),
    Column("started", "started", 11),
    Column("lasted", "lasted", 9, ">", drop=3),
    Column("ranks", "ranks", 5, ">", drop=6),
    Column("steps", "steps", 6, ">", drop=5),
    Column("samples", "samples/s", 9, ">"),
    Column("its", "it/s", 6, ">", drop=7),
    Column("p50", "p50", 8, ">", drop=4),
    Column("trend", "trend", 6, ">", drop=2),
    Column("state", "state", 8),
    Column("user", "user", 9, drop=8),
    Column("script", "script", 14, drop=9, grow=1, most=30),
    Column("found", "findings", 16, drop=1, grow=2, most=60),
)


def table(rows: Sequence[RunRow], marked: Sequence[str], room: Room, note: str, text: str = "") -> Block:
    """A row a run; the marked ones carry a sign."""
    gap = 1 if room.width < 100 else 2
    layout = chosen(COLUMNS, room.width - 2, gap)
    head = heading(layout, gap=gap, lead=1)
    shown = [one for one in rows if matches(one, text)]
    lines = [row(layout, _cells(one, marked), key=("past", one.run), gap=gap, lead=" ") for one in shown]
    empty = line(Span(f"   no run matches “{text}”" if rows else f"   {note}", "dim"), width=room.width)
    return Block((Line(head.spans),), tuple(lines) or (empty,))


def matches(one: RunRow, text: str) -> bool:
    where = " ".join(str(v) for v in (one.run, one.name, one.user, one.script, one.state) if v).lower()
    return all(word in where for word in text.lower().split())


def _cells(one: RunRow, marked: Sequence[str]) -> dict[str, Cell]:
    mark = RUN.get(one.state, RUN["ended"])
    return {
        "mark": Span("AB"[marked.index(one.run)] if one.run in marked else " ", "accent"),
        "name": [mark.span, Span(f" {one.name}", "strong")],
        "started": show.date(one.started),
        "lasted": show.duration(one.ended - one.started) if one.ended else show.ABSENT,
        "ranks": str(one.ranks),
        "steps": show.count(one.steps),
        "samples": show.number(one.samples_per_s),
        "its": show.number(one.iterations_per_s),
        "p50": show.seconds(one.step_p50_s),
        "trend": trend(one.trend_ratio),
        "state": Span(one.state, mark.role),
        "user": Span(one.user or show.ABSENT, "dim"),
        "script": Span((one.script or show.ABSENT).rpartition("/")[2], "dim"),
        "found": Span(
            ", ".join(name for name in one.findings if not name.startswith("healthy")) or "none", "dim"
        ),
    }


VERDICTS = {
    "faster": ("●", "good", "B is faster"),
    "slower": ("▲", "alarm", "B is slower"),
    "same": ("○", "dim", "no difference beyond the noise"),
    "unsure": ("◐", "warn", "not sure: the interval includes no change"),
}


def comparison(found: Comparison, room: Room) -> list[Line]:
    """Is it faster, surely so, where does the time go now, and as much as predicted?"""
    symbol, role, words = VERDICTS[found.verdict]
    range_text = (
        f" ({found.low:.2f}–{found.high:.2f})" if found.low is not None and found.high is not None else ""
    )
    gain = (
        f"×{found.speedup:.2f}{range_text} {found.unit}"
        if found.speedup is not None
        else "no rate on one side"
    )
    lines = [
        line(
            Span(f" {symbol} {words}  ", role),
            Span(gain, "gain" if found.verdict == "faster" else "strong"),
            Span(f"  noise ±{found.noise_floor * 100:.0f} %", "dim"),
            width=room.width,
        )
    ]
    lines += [line(Span(f" ◆ {clip(text, room.width - 4)}", "warn")) for text in found.warnings]
    lines += [line(), *_sides(found.a, found.b, room), line(), *_phases(found, room)]
    return [*lines, *_realised(found, room)]


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
        texts = (show.duration(v) if field == "seconds" else show.value_of(field, v) for v in (one, two))
        out.append(
            line("   ", fit(Span(name, "dim"), 14), *(fit(Span(text, "strong"), wide) for text in texts))
        )
    return out


def _phases(found: Comparison, room: Room) -> list[Line]:
    """Seconds a step, A above B, drawn to one scale."""
    if not found.phases:
        return []
    top = max(max(change.before_seconds, change.after_seconds) for change in found.phases) or 1.0
    width = max(8, min(40, room.width - 44))
    out = [section("Seconds a step, A above B")]
    for change in found.phases:
        for which, seconds in (("A", change.before_seconds), ("B", change.after_seconds)):
            name = change.name if which == "A" else ""
            drawn = bar(seconds / top, width, role_of(change.name).replace("phase.", "ink."))
            out.append(
                line(
                    "   ",
                    fit(Span(name, "dim"), 13),
                    Span(f"{which} ", "dim"),
                    *drawn,
                    fit(Span(show.seconds(seconds), "strong"), 11, ">"),
                )
            )
    return [*out, line()]


def _realised(found: Comparison, room: Room) -> list[Line]:
    out = [section("Predicted and realised")]
    for item in found.realised:
        sign = (
            Span("✓ ", "good")
            if item.inside
            else Span("◆ ", "warn")
            if item.inside is False
            else Span("○ ", "dim")
        )
        got = f"realised ×{item.realised:.2f}" if item.realised is not None else "not measurable by itself"
        part = " (its part of several)" if item.shared and item.realised is not None else ""
        out.append(
            line(
                "   ",
                sign,
                Span(item.title, "strong"),
                Span(f"  predicted {_gain(item.predicted)}, {got}{part}", "dim"),
                width=room.width,
            )
        )
    if found.predicted_together is not None and len(found.realised) > 1:
        out.append(line("   ", Span(f"together at most {_gain(found.predicted_together)}", "dim")))
    out += [line("   ", Span(f"still there: {name}", "dim")) for name in found.remaining]
    out += [line("   ", Span(f"new in B: {name}", "warn")) for name in found.new]
    return out if len(out) > 1 else [*out, line(Span("   no finding went away between A and B", "dim"))]


def _gain(speed: Speedup | None) -> str:
    return show.gain(speed.low, speed.likely, speed.high) if speed else "nothing"

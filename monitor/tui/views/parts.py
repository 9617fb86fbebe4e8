"""Small parts shared by several views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from monitor.language import word
from monitor.model import units
from monitor.model.run import RunState
from monitor.tui.frame import HostFrame
from monitor.tui.text import Cell, Line, Room, Span, cells, fit, line


def section(title: str) -> Line:
    return line(Span(f" {word(title)}", "title"))


def back(host: HostFrame, readings: int) -> str:
    """How long ago the first of this many readings was; empty while there is only one."""
    if host.snapshot is None or readings < 2:
        return ""
    return f"−{units.duration(readings * host.snapshot.interval_seconds)}"


def now_in(state: RunState, phase: str | None, seconds: float | None) -> str:
    """The phase a rank or run is in and for how long; shortened to fit if it is stuck there."""
    if phase is None:
        return word(state)
    return f"{word(phase)} {units.age(seconds) if state == 'stalled' else units.seconds(seconds)}"


def pairs_lines(pairs: Mapping[str, str], room: Room, *, ours: bool = True) -> Iterable[Line]:
    """Name and value, in as many columns as fit. Words that are not ours are never translated."""
    pairs = {word(name): word(value) for name, value in pairs.items()} if ours else dict(pairs)
    name_width = min(30, max(map(cells, pairs), default=0) + 1)
    value_width = min(40, max(map(cells, pairs.values()), default=0) + 2)
    count = max(1, (room.width - 1) // (name_width + value_width))
    items = list(pairs.items())
    rows = -(-len(items) // count)
    for y in range(rows):
        parts: list[Cell] = ["   "]
        for name, value in items[y::rows]:
            parts += [fit(Span(name, "dim"), name_width), fit(Span(value, "strong"), value_width)]
        yield line(*parts, width=room.width)

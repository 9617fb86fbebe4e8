"""A GPU as a card: its title and four tall graphs side by side; a partitioned GPU lists its instances."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from monitor.language import said, word
from monitor.model import units
from monitor.model.gpu import Gpu
from monitor.tui.frame import HostFrame
from monitor.tui.text import Cell, Line, Room, Span, beside, cells, fit, line, shares
from monitor.tui.views.gpu_text import condition_text, is_odd_tick, memory_text, runs_text
from monitor.tui.views.parts import back
from monitor.tui.views.symbols import GPU, reasons
from monitor.tui.widgets.graph import bar, framed, history

CARD_LINES, CARD_MOST_LINES = 6, 11
"""Lines of the smallest and the tallest card."""
HOTTEST_CELSIUS = 100.0
"""Top of the temperature graph for a card that does not report its slowdown temperature."""
EDGES = 4
"""What the frame of a graph takes of the width of its title."""
FOUR = 100
"""From this width four graphs fit side by side, otherwise three."""


class Gauge(NamedTuple):
    """One graph of a GPU."""

    name: str
    value: str
    samples: list[float | None]
    top: float
    high: str
    """The top of the scale as text."""
    role: str
    short: str = ""
    """The value without its limit, where there is little room."""


def key_of(host: HostFrame, gpu: Gpu) -> Hashable:
    return ("gpu", host.label, gpu.uuid)


def card(host: HostFrame, gpu: Gpu, room: Room, tall: int = CARD_LINES, *, named: bool = False) -> list[Line]:
    """Which GPU it is, then graphs of use, memory, power and heat side by side."""
    title = line(*_title(host, gpu, named), width=room.width, key=key_of(host, gpu))
    if gpu.mig:
        return [title, *mig_lines(gpu, room), line()]
    count = 4 if room.width >= FOUR else 3
    widths = shares(room.width - 2, count)
    shown = zip(gauges(host, gpu, widths[0] - 2), widths, strict=False)
    columns = [gauge_lines(host, gpu, gauge, width, tall - 3) for gauge, width in shown]
    body = [Line((Span(" "), *made.spans)) for made in beside(columns, widths, gap=1)]
    fresh = host.current and gpu.state == "ok"
    return [title if host.current else title.dimmed(), *(body if fresh else (made.dimmed() for made in body))]


def _title(host: HostFrame, gpu: Gpu, named: bool) -> list[Cell]:
    symbol, held, runs = GPU[gpu.condition], reasons(gpu), runs_text(gpu)
    return [
        " ",
        symbol.span,
        Span(f" {host.label} GPU {gpu.index}  " if named else f" GPU {gpu.index}  ", "strong"),
        Span(f"{gpu.name or ''}  ", "dim"),
        Span(condition_text(gpu), symbol.role),
        Span(f" by {held}" if held and gpu.state == "ok" else "", symbol.role),
        Span(f"  {gpu.state_detail}" if gpu.state_detail else "", "dim"),
        Span(f"  ▸ {runs}" if runs else "", "dim"),
    ]


def gauges(host: HostFrame, gpu: Gpu, width: int) -> list[Gauge]:
    """The four graphs of a GPU, each with its own fixed range."""
    seen = host.recent(gpu.uuid, 2 * width)
    heat = f"{units.celsius(gpu.temperature_celsius)}  {units.hertz(gpu.sm_clock_hertz)}"
    power = units.watts(gpu.power_watts, gpu.power_limit_watts)
    role = GPU[gpu.condition].role
    memory_top, power_top = gpu.memory_total_bytes or 1.0, gpu.power_limit_watts or 1.0
    hottest = gpu.temperature_slowdown_celsius or HOTTEST_CELSIUS
    limit = units.watts(gpu.power_limit_watts, None) if gpu.power_limit_watts else ""
    use, whole = units.percent(gpu.utilization_ratio), units.size(gpu.memory_total_bytes)
    calm = role if role != "dim" else "info"
    held, watts = units.size(gpu.memory_used_bytes), units.watts(gpu.power_watts, None)
    return [
        Gauge("use", use, [r.use for r in seen], 1.0, "100 %", calm),
        Gauge("memory", memory_text(gpu), [r.memory for r in seen], memory_top, whole, "info", held),
        Gauge("power", power, [r.power for r in seen], power_top, limit, "accent", watts),
        Gauge("heat", heat, [r.temperature for r in seen], hottest, units.celsius(hottest), "dim"),
    ]


def gauge_lines(host: HostFrame, gpu: Gpu, gauge: Gauge, width: int, height: int) -> list[Line]:
    """A framed graph, `width` cells wide with `height` lines of dots."""
    name = word(gauge.name) if gpu.state == "ok" else said(f"{gauge.name} was")
    fits = cells(f"{name} {gauge.value}") <= width - EDGES
    head = (Span(f"{name} ", "head"), Span(gauge.value if fits else gauge.short or gauge.value, "strong"))
    rows = history(gauge.samples, width - 2, height, gauge.top, odd=is_odd_tick(host))
    drawn = [line(Span(text[:-1], gauge.role), Span(text[-1:], gauge.role)) for text in rows]
    return framed(head, gauge.high, drawn, width, (back(host, len(gauge.samples)), "now"))


def mig_lines(gpu: Gpu, room: Room) -> list[Line]:
    """The instances of a partitioned card; the driver reports only their memory."""
    return [
        line(
            "     ",
            fit(part.name or part.uuid, 14),
            fit(f"GI {part.gpu_instance} CI {part.compute_instance}", 12),
            *bar(part.memory_used_ratio, min(30, room.width // 4), "info"),
            f"  {units.of(part.memory_used_bytes, part.memory_total_bytes)}",
            width=room.width,
        )
        for part in gpu.mig
    ]

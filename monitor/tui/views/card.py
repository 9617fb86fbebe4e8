"""A GPU as a card: its title and four tall graphs side by side; a partitioned one lists its instances."""

from __future__ import annotations

from collections.abc import Hashable

from monitor.snapshot import Gpu
from monitor.tui import format as show
from monitor.tui.frame import HostFrame
from monitor.tui.text import Cell, Line, Span, beside, fit, line
from monitor.tui.views.gpuwords import half, memory_words, run_words, state_words
from monitor.tui.views.marks import Mark, gpu_mark, throttled
from monitor.tui.widgets.graph import bar, history
from monitor.tui.widgets.panel import Room

CARD = 6
"""Lines of the smallest card."""


def key_of(host: HostFrame, gpu: Gpu) -> Hashable:
    return ("gpu", host.label, gpu.uuid)


def card(host: HostFrame, gpu: Gpu, room: Room, tall: int = CARD, *, named: bool = False) -> list[Line]:
    """Six lines or more: who it is, then use, memory, power and heat side by side with tall graphs."""
    assert host.snapshot is not None
    mark = gpu_mark(gpu, host.snapshot)
    title = line(*_title(host, gpu, mark, named), width=room.width, key=key_of(host, gpu))
    if gpu.mig:
        return [title, *mig_lines(gpu, room), line()]
    count = 4 if room.width >= 100 else 3
    width = (room.width - 3 - 2 * (count - 1)) // count
    columns = [
        _gauge(*gauge, width, tall - 3, half(host)) for gauge in gauges(host, gpu, mark, width)[:count]
    ]
    body = [Line((Span("   "), *made.spans)) for made in beside(columns, [width] * count)]
    if not host.current:
        title = title.dimmed()
    fresh = host.current and gpu.state == "ok"
    return [title, *(body if fresh else (made.dimmed() for made in body)), line()]


def _title(host: HostFrame, gpu: Gpu, mark: Mark, named: bool) -> list[Cell]:
    assert host.snapshot is not None
    run, held = run_words(gpu, host.snapshot), throttled(gpu)
    return [
        " ",
        mark.span,
        Span(f" {host.label} GPU {gpu.index}  " if named else f" GPU {gpu.index}  ", "strong"),
        Span(f"{gpu.name or ''}  ", "dim"),
        Span(state_words(gpu, mark), mark.role),
        Span(f" by {', '.join(held)}" if held and gpu.state == "ok" else "", mark.role),
        Span(f"  {gpu.state_detail}" if gpu.state_detail else "", "dim"),
        Span(f"  ▸ {run}" if run else "", "dim"),
    ]


Gauge = tuple[str, str, list[float | None], float, str]


def gauges(host: HostFrame, gpu: Gpu, mark: Mark, width: int) -> list[Gauge]:
    """Name, value, samples, range and role of each of the four graphs of a GPU."""
    seen = host.recent(gpu.uuid, 2 * width)
    was = "" if gpu.state == "ok" else " was"
    heat = f"{show.celsius(gpu.temperature_celsius)}  {show.hertz(gpu.sm_clock_hertz)}"
    power = show.watts(gpu.power_watts, gpu.power_limit_watts)
    role = mark.role if mark.role != "dim" else "info"
    hottest = gpu.temperature_slowdown_celsius or 100.0
    return [
        (f"use{was}", show.percent(gpu.utilization_ratio), [r.use for r in seen], 1.0, role),
        (f"memory{was}", memory_words(gpu), [r.memory for r in seen], gpu.memory_total_bytes or 1.0, "info"),
        (f"power{was}", power, [r.power for r in seen], gpu.power_limit_watts or 1.0, "accent"),
        (f"heat{was}", heat, [r.temperature for r in seen], hottest, "dim"),
    ]


def _gauge(
    name: str,
    value: str,
    samples: list[float | None],
    top: float,
    role: str,
    width: int,
    height: int,
    odd: bool,
) -> list[Line]:
    head = line(Span(f"{name} ", "head"), Span(value, "strong"), width=width)
    rows = history(samples, width, height, top, half=odd)
    return [head, *(line(Span(text[:-1], role), Span(text[-1:], role)) for text in rows)]


def mig_lines(gpu: Gpu, room: Room) -> list[Line]:
    """The instances of a partitioned card: their memory is all the driver tells of them."""
    out = []
    for part in gpu.mig:
        ratio = (
            part.memory_used_bytes / part.memory_total_bytes
            if part.memory_used_bytes is not None and part.memory_total_bytes
            else None
        )
        name = fit(f"{part.name or part.uuid}", 14)
        text = show.of(part.memory_used_bytes, part.memory_total_bytes)
        out.append(
            line(
                "     ",
                name,
                fit(f"GI {part.gpu_instance} CI {part.compute_instance}", 12),
                *bar(ratio, min(30, room.width // 4), "info"),
                f"  {text}",
                width=room.width,
            )
        )
    return out

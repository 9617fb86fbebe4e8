"""GPUs: a row each, two rows abreast when many must fit, or a card with tall graphs when few do."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.snapshot import Gpu
from monitor.tui import format as show
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.table import Column, Layout, chosen, heading, row
from monitor.tui.text import Block, Cell, Line, Span, beside, clip, line
from monitor.tui.views.card import CARD, card, key_of
from monitor.tui.views.gpuwords import (
    memory_ratio,
    memory_words,
    pcie_limit,
    run_words,
    state_words,
    traffic,
    trail,
)
from monitor.tui.views.marks import Mark, gpu_mark, throttled
from monitor.tui.views.top import unreachable
from monitor.tui.widgets.graph import bar
from monitor.tui.widgets.panel import Room

COLUMNS = (
    Column("gpu", "GPUs", 6),
    Column("state", "", 9, drop=5),
    Column("use", "use", 4, ">"),
    Column("graph", "last minutes", 12, grow=2, most=60),
    Column("memory", "memory", 13, ">"),
    Column("membar", "", 8, drop=11, grow=1, most=16),
    Column("power", "power", 9, ">", drop=1),
    Column("temp", "temp", 4, ">"),
    Column("clock", "clock", 8, ">", drop=2),
    Column("reason", "held by", 11, drop=8),
    Column("sm", "SM", 4, ">", drop=12),
    Column("pcie", "PCIe ↓↑", 9, ">", drop=9),
    Column("nvlink", "NVLink ↓↑", 9, ">", drop=13),
    Column("procs", "proc", 4, ">", drop=10),
    Column("run", "run", 14, drop=6, grow=1, most=32),
)
NARROW = (
    Column("gpu", "GPUs", 5),
    Column("use", "use", 4, ">"),
    Column("graph", "", 6, grow=1, most=40),
    Column("full", "mem", 4, ">"),
    Column("watts", "power", 5, ">", drop=1),
    Column("temp", "temp", 4, ">"),
)


def table(frame: Frame, room: Room) -> Block:
    """Every GPU of every host in the room there is."""
    notes = unreachable(frame, room)
    entries = list(frame.gpus())
    height = room.height - len(notes)
    if not entries:
        return Block((line(Span(" GPUs", "title"), width=room.width),), (*notes, *_none(frame, room)))
    if height >= len(entries) * CARD and len(entries) <= 4:
        tall = height // len(entries)
        return Block(
            (),
            (*notes, *(part for entry in entries for part in card(*entry, room, tall, named=frame.several))),
        )
    if 1 + len(entries) > height and room.width >= 76:
        return _abreast(frame, entries, room, notes)
    layout = chosen(_columns(frame), room.width - 2, 1 if room.width < 100 else 2)
    gap = 1 if room.width < 100 else 2
    rows = [_row(frame, layout, *entry, gap) for entry in entries]
    return Block((heading(layout, gap=gap, lead=1),), (*notes, *rows))


def _none(frame: Frame, room: Room) -> list[Line]:
    details = [h.snapshot.source.detail or "no GPU found" for h in frame.hosts if h.snapshot]
    return [line(Span("   " + clip(text, room.width - 4), "dim"), width=room.width) for text in details]


def _columns(frame: Frame) -> Sequence[Column]:
    return (Column("host", "host", 10, grow=0), *COLUMNS) if frame.several else COLUMNS


def _abreast(frame: Frame, entries: list[tuple[HostFrame, Gpu]], room: Room, notes: list[Line]) -> Block:
    """Two columns of short rows: sixteen GPUs in eight lines."""
    width = (room.width - 2) // 2
    columns = (Column("gpu", "GPUs", 12), *NARROW[1:]) if frame.several else NARROW
    layout = chosen(columns, width - 2, 1)
    half = (len(entries) + 1) // 2
    sides = [[_row(frame, layout, *entry, 1) for entry in part] for part in (entries[:half], entries[half:])]
    head = beside([[heading(layout, gap=1, lead=1)]] * 2, (width, width))
    return Block((Line(head[0].spans),), (*notes, *beside(sides, (width, width))))


def _row(frame: Frame, layout: Layout, host: HostFrame, gpu: Gpu, gap: int) -> Line:
    assert host.snapshot is not None
    mark = gpu_mark(gpu, host.snapshot)
    graph = layout.get("graph", (COLUMNS[3], 0))[1]
    cells = _cells(host, gpu, mark, graph) if gpu.state == "ok" else _gone(host, gpu, mark, graph)
    if frame.several and "host" not in layout:
        cells["gpu"] = [mark.span, Span(f" {clip(host.label, 8)}", "dim"), Span(f" {gpu.index}", "strong")]
    cells["membar"] = bar(memory_ratio(gpu), layout["membar"][1], "info") if "membar" in layout else ""
    made = row(layout, cells, key=key_of(host, gpu), gap=gap, lead=" ")
    return made if host.current else made.dimmed()


def _cells(host: HostFrame, gpu: Gpu, mark: Mark, graph: int) -> dict[str, Cell]:
    assert host.snapshot is not None
    pcie, link = gpu.pcie, gpu.nvlink
    return {
        "host": clip(host.label, 10),
        "gpu": [
            mark.span,
            Span(f" {gpu.index}", "strong"),
            Span("  MIG" if gpu.mig_enabled else "", "accent"),
        ],
        "state": Span(state_words(gpu, mark), mark.role),
        "use": Span(show.percent(gpu.utilization_ratio), "strong"),
        "graph": trail(host, gpu, graph, mark.role if mark.role != "dim" else "faint"),
        "memory": memory_words(gpu),
        "full": show.percent(memory_ratio(gpu)),
        "power": show.watts(gpu.power_watts, gpu.power_limit_watts),
        "watts": show.watts(gpu.power_watts, None),
        "temp": show.celsius(gpu.temperature_celsius),
        "clock": Span(show.hertz(gpu.sm_clock_hertz), "warn" if throttled(gpu) else ""),
        "reason": Span(", ".join(throttled(gpu)), "warn"),
        "sm": Span(show.percent(gpu.activity.sm_active_ratio)),
        "pcie": traffic(pcie.receive_bytes_per_second, pcie.transmit_bytes_per_second, pcie_limit(gpu)),
        "nvlink": traffic(
            link.receive_bytes_per_second, link.transmit_bytes_per_second, link.bandwidth_bytes_per_second
        ),
        "procs": str(len(gpu.processes)),
        "run": Span(run_words(gpu, host.snapshot), "dim"),
    }


def _gone(host: HostFrame, gpu: Gpu, mark: Mark, graph: int) -> dict[str, Cell]:
    """A GPU that does not answer: what happened in place of its readings, which are not current."""
    cells: dict[str, Cell] = dict.fromkeys((column.name for column in (*COLUMNS, *NARROW)), "")
    cells |= dict.fromkeys(("use", "memory", "full", "power", "watts", "temp", "clock"), show.ABSENT)
    words = gpu.state_detail or state_words(gpu, mark)
    return cells | {
        "host": clip(host.label, 10),
        "gpu": [mark.span, Span(f" {gpu.index}", "strong")],
        "state": Span(state_words(gpu, mark), mark.role),
        "graph": Span(clip(words, graph), mark.role),
        "run": Span(run_words(gpu, host.snapshot) if host.snapshot else "", "dim"),
    }

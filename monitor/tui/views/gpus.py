"""GPUs: one row each, two rows side by side if many must fit, or a card with tall graphs if there are few.

The worst come first. If not all fit, the idle ones are folded into one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from monitor.language import word
from monitor.model import units
from monitor.model.gpu import Gpu
from monitor.model.groups import numbers
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.line_budget import Wants
from monitor.tui.table import Column, Layout, chosen, gap_for, heading, occupied, row
from monitor.tui.text import Block, Cell, Line, Room, Span, beside, clip, fit, line
from monitor.tui.views.card import CARD_LINES, CARD_MOST_LINES, card, key_of
from monitor.tui.views.gpu_text import condition_text, memory_text, runs_text, traffic, use_graph
from monitor.tui.views.header import silent_hosts, silent_lines
from monitor.tui.views.symbols import GPU, Symbol, reasons
from monitor.tui.widgets.graph import bar

MOST_CARDS = 4
"""More GPUs than this are shown as rows, not cards."""
MOST_ROWS = 8
"""With more GPUs than this, idle ones are folded while others work, even if there is room for all."""
ABREAST_WIDTH, ABREAST_HOSTS_WIDTH = 58, 76
"""From this width two rows fit side by side; with the names of their hosts they are wider."""
COLUMNS = (
    Column("host", "host", 10),
    Column("gpu", "GPUs", 6),
    Column("state", "", 9, drop=5),
    Column("use", "use", 4, ">"),
    Column("graph", "last minutes", 14, grow=2, most=60),
    Column("membar", "memory", 8, drop=3, grow=1, most=20),
    Column("memory", "", 11, ">"),
    Column("power", "power", 9, ">", drop=1),
    Column("temp", "temp", 4, ">"),
    Column("clock", "clock", 8, ">", drop=8),
    Column("reason", "held by", 11, drop=7),
    Column("sm", "SM", 4, ">", drop=12),
    Column("pcie", "PCIe ↓↑", 9, ">", drop=9),
    Column("nvlink", "NVLink ↓↑", 9, ">", drop=13),
    Column("procs", "proc", 4, ">", drop=14),
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

Entry = tuple[HostFrame, Gpu]


def wants(frame: Frame, room: Room) -> Wants:
    """By preference: cards if few, one row each, idle ones folded, two rows side by side; plus a line for
    each silent host."""
    entries, notes = list(frame.gpus()), len(silent_hosts(frame))
    if not entries:
        return Wants((notes + 2,), spaced=True)
    few = len(entries) <= MOST_CARDS
    working, folds = _folded(entries)
    sizes = [len(entries) * CARD_LINES] if few else []
    if len(entries) <= MOST_ROWS or not working:
        sizes.append(1 + len(entries))
    sizes.append(1 + len(working) + len(folds))
    if _fits_abreast(frame, room):
        sizes.append(1 + (len(working) + 1) // 2 + len(folds))
    return Wants(
        tuple(notes + lines for lines in dict.fromkeys(sizes)),
        most=notes + len(entries) * CARD_MOST_LINES if few else 0,
        step=len(entries),
        squeezed=notes + 3,
        spaced=True,
    )


def table(frame: Frame, room: Room) -> Block:
    """Every GPU of every host, in the available room."""
    notes = silent_lines(frame, room)
    entries = list(frame.gpus())
    height = room.height - len(notes)
    if not entries:
        return Block(
            (line(Span(f" {word('GPUs')}", "title"), width=room.width),), (*notes, *_none(frame, room))
        )
    if height >= len(entries) * CARD_LINES and len(entries) <= MOST_CARDS:
        return Block((), (*notes, *_cards(frame, entries, room, height // len(entries))))
    if 1 + len(entries) <= height:
        return _rows(frame, entries, room, notes)
    working, folds = _folded(entries)
    if 1 + len(working) + len(folds) > height and _fits_abreast(frame, room):
        return _abreast(frame, working, room, notes, _fold_lines(frame, folds, room))
    return _rows(frame, working, room, notes, _fold_lines(frame, folds, room))


def _fits_abreast(frame: Frame, room: Room) -> bool:
    return room.width >= (ABREAST_HOSTS_WIDTH if frame.several else ABREAST_WIDTH)


def _none(frame: Frame, room: Room) -> list[Line]:
    details = [host.snapshot.source.detail or "no GPU found" for host in frame.hosts if host.snapshot]
    shown = details if not frame.narrowed else ["no GPU matches"]
    return [line(Span("   " + clip(text, room.width - 4), "dim"), width=room.width) for text in shown]


def _cards(frame: Frame, entries: list[Entry], room: Room, tall: int) -> list[Line]:
    return [part for entry in entries for part in card(*entry, room, tall, named=frame.several)]


# ── Idle ones in one line ────────────────────────────────────────────────────────────────────────


def _folded(entries: Sequence[Entry]) -> tuple[list[Entry], list[list[Entry]]]:
    """The working GPUs, and the idle ones of each host; a single idle GPU gets a normal row."""
    idle = [entry for entry in entries if entry[1].condition == "idle" and entry[0].current]
    hosts = [list(part) for _, part in groupby(idle, key=lambda entry: entry[0].label)]
    folds = [part for part in hosts if len(part) > 1]
    gone = {id(gpu) for part in folds for _, gpu in part}
    return [entry for entry in entries if id(entry[1]) not in gone], folds


def _fold_lines(frame: Frame, folds: list[list[Entry]], room: Room) -> list[Line]:
    """ "18 idle: GPUs 6–23"."""
    out = []
    for part in folds:
        host, first = part[0]
        where = f"{host.label} " if frame.several else ""
        text = f"{where}{len(part)} idle: GPUs {numbers(gpu.index for _, gpu in part)}"
        symbol = GPU["idle"]
        out.append(
            line(
                " ",
                symbol.span,
                Span(f" {clip(text, room.width - 5)}", "dim"),
                width=room.width,
                key=key_of(host, first),
            )
        )
    return out


# ── Rows ─────────────────────────────────────────────────────────────────────────────────────────


def _rows(
    frame: Frame, entries: Sequence[Entry], room: Room, notes: list[Line], folds: Sequence[Line] = ()
) -> Block:
    gap = gap_for(room.width)
    cells = [_cells(*entry) for entry in entries]
    columns = [column for column in COLUMNS if column.name != "host" or frame.several]
    layout = chosen(occupied(columns, cells), room.width - 2, gap)
    if "memory" in layout and "membar" not in layout:  # whose title names both
        column, width = layout["memory"]
        layout["memory"] = replace(column, title="memory"), width
    rows = [_row(layout, *entry, made, gap) for entry, made in zip(entries, cells, strict=True)]
    return Block((heading(layout, gap=gap, lead=1),), (*notes, *rows, *folds))


def _abreast(
    frame: Frame, entries: Sequence[Entry], room: Room, notes: list[Line], folds: Sequence[Line]
) -> Block:
    """Two columns of short rows: sixteen GPUs in eight lines."""
    width = (room.width - 2) // 2
    columns = (Column("gpu", "GPUs", 12), *NARROW[1:]) if frame.several else NARROW
    layout = chosen(columns, width - 2, 1)
    rows = [_row(layout, *entry, _short(frame, *entry), 1) for entry in entries]
    half = (len(rows) + 1) // 2
    head = beside([[heading(layout, gap=1, lead=1)]] * 2, (width, width))
    return Block(
        (Line(head[0].spans),), (*notes, *beside([rows[:half], rows[half:]], (width, width)), *folds)
    )


def _row(layout: Layout, host: HostFrame, gpu: Gpu, cells: dict[str, Cell], gap: int) -> Line:
    symbol = GPU[gpu.condition]
    if gpu.state != "ok":
        made = _silent_row(layout, host, gpu, cells, gap)
        return made if host.current else made.dimmed()
    if "graph" in layout:
        role = symbol.role if symbol.role != "dim" else "faint"
        cells["graph"] = use_graph(host, gpu, layout["graph"][1], role)
    if "membar" in layout:
        cells["membar"] = bar(gpu.memory_used_ratio, layout["membar"][1], "info")
    made = row(layout, cells, key=key_of(host, gpu), gap=gap, lead=" ")
    return made if host.current else made.dimmed()


def _silent_row(layout: Layout, host: HostFrame, gpu: Gpu, cells: dict[str, Cell], gap: int) -> Line:
    """What happened, across the columns of the readings there are none of."""
    names = list(layout)
    before = {name: layout[name] for name in names[: names.index("use")]}
    text = gpu.state_detail or ""
    if "state" not in before:
        text = f"{condition_text(gpu)}: {text}" if text else condition_text(gpu)
    room = sum(layout[name][1] + gap for name in names if name not in before) - gap
    told = fit(Span(clip(text, room), GPU[gpu.condition].role), room)
    made = row(before, cells, gap=gap, lead=" ")
    return line(*made.spans, *told, " " * gap, key=key_of(host, gpu))


def _short(frame: Frame, host: HostFrame, gpu: Gpu) -> dict[str, Cell]:
    symbol = GPU[gpu.condition]
    name = [Span(f" {clip(host.label, 8)}", "dim")] if frame.several else []
    return _cells(host, gpu) | {"gpu": [symbol.span, *name, Span(f" {gpu.index}", "strong")]}


def _cells(host: HostFrame, gpu: Gpu) -> dict[str, Cell]:
    """All cells but the graphs, which need to know their width."""
    symbol = GPU[gpu.condition]
    if gpu.state != "ok":
        return _not_answering(host, gpu, symbol)
    return {
        "host": clip(host.label, 10),
        "gpu": [symbol.span, Span(f" {gpu.index}", "strong")],
        "state": Span(condition_text(gpu), symbol.role),
        "use": _use(gpu),
        "memory": memory_text(gpu),
        "full": units.tight_percent(gpu.memory_used_ratio),
        "power": units.watts(gpu.power_watts, gpu.power_limit_watts),
        "watts": units.watts(gpu.power_watts, None),
        "temp": units.celsius(gpu.temperature_celsius),
        "clock": Span(units.hertz(gpu.sm_clock_hertz), "warn" if gpu.throttled_by else ""),
        "reason": Span(reasons(gpu), "warn"),
        "sm": Span(units.tight_percent(gpu.activity.sm_active_ratio)),
        "pcie": traffic(gpu.pcie),
        "nvlink": traffic(gpu.nvlink),
        "procs": str(len(gpu.processes)),
        "run": Span(runs_text(gpu), "dim"),
    }


def _use(gpu: Gpu) -> Span:
    """The driver reports no use of a card that is partitioned."""
    if gpu.mig_enabled and gpu.utilization_ratio is None:
        return Span("MIG", "accent")
    return Span(units.tight_percent(gpu.utilization_ratio), "strong")


def _not_answering(host: HostFrame, gpu: Gpu, symbol: Symbol) -> dict[str, Cell]:
    """Without readings: those there were are not current."""
    blank: dict[str, Cell] = dict.fromkeys((column.name for column in (*COLUMNS, *NARROW)), "")
    return blank | {
        "host": clip(host.label, 10),
        "gpu": [symbol.span, Span(f" {gpu.index}", "strong")],
        "state": Span(condition_text(gpu), symbol.role),
        "run": Span(runs_text(gpu), "dim"),
    }

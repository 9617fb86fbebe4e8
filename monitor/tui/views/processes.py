"""Processes: sorted, filtered, as a list or as a tree of trainers and their workers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from monitor.language import word
from monitor.model import units
from monitor.model.host import Process
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.line_budget import HIDDEN, Wants
from monitor.tui.table import Column, Layout, chosen, gap_for, heading, occupied, row
from monitor.tui.text import Block, Cell, Line, Room, Span, clip, line

COLUMNS = (
    Column("pid", "Processes", 9, ">"),
    Column("host", "host", 10, drop=9),
    Column("user", "user", 8, drop=3),
    Column("gpu", "GPU", 4, ">"),
    Column("gpumem", "GPU mem", 8, ">"),
    Column("sm", "SM", 4, ">", drop=5),
    Column("cpu", "CPU", 6, ">"),
    Column("rss", "memory", 8, ">"),
    Column("read", "read", 9, ">", drop=8),
    Column("role", "role", 7, drop=4),
    Column("run", "run", 14, drop=2, most=24),
    Column("where", "container, job", 21, drop=7),
    Column("age", "age", 4, ">", drop=6),
    Column("command", "command", 10, grow=1),
)


@dataclass(frozen=True, slots=True)
class Order:
    """How the user wants to see them; saved with the layout."""

    sort: str = "gpumem"
    reverse: bool = True
    text: str = ""
    tree: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A process of a host, and how deep it is in the tree."""

    host: HostFrame
    process: Process
    depth: int = 0

    @property
    def job(self) -> str:
        p = self.process
        parts = (p.container, p.pod, f"slurm {p.slurm_job}" if p.slurm_job else None)
        return " ".join(part for part in parts if part)


SORTS: dict[str, Callable[[Process], Any]] = {
    "pid": lambda p: p.pid,
    "user": lambda p: p.user,
    "gpu": lambda p: p.gpu_indices[0] if p.gpu_indices else None,
    "gpumem": lambda p: p.gpu_memory_bytes,
    "sm": lambda p: p.gpu_sm_ratio,
    "cpu": lambda p: p.cpu_ratio,
    "rss": lambda p: p.rss_bytes,
    "read": lambda p: p.read_bytes_per_second,
    "run": lambda p: p.run,
    "age": lambda p: p.started,
    "command": lambda p: p.command,
}


def entries(frame: Frame, order: Order) -> list[Entry]:
    """What is shown, in display order; unknown values come last."""
    found = [
        Entry(host, process) for host in frame.hosts if host.snapshot for process in host.snapshot.processes
    ]
    found = sorted((one for one in found if matches(one, order.text)), key=lambda one: one.process.pid)
    value = SORTS[order.sort]
    known = [one for one in found if value(one.process) is not None]
    known.sort(key=lambda one: value(one.process), reverse=order.reverse)
    ordered = known + [one for one in found if value(one.process) is None]
    return list(_tree(ordered)) if order.tree else ordered


def matches(entry: Entry, text: str) -> bool:
    """Every word of the filter must occur somewhere in the row."""
    p = entry.process
    where = " ".join(
        str(v) for v in (p.pid, p.user, p.name, p.command, p.role, p.run, entry.job) if v
    ).lower()
    return all(word in where for word in text.lower().split())


def _tree(ordered: list[Entry]) -> Iterator[Entry]:
    """Children under their parents, depth first, keeping the order among siblings."""
    known = {(e.host.label, e.process.pid) for e in ordered}
    children: dict[tuple[str, int | None], list[Entry]] = {}
    for entry in ordered:
        parent = (entry.host.label, entry.process.parent)
        children.setdefault(parent if parent in known else (entry.host.label, None), []).append(entry)
    stack = [
        (e, 0)
        for label in dict.fromkeys(e.host.label for e in ordered)
        for e in children.get((label, None), ())
    ]
    stack.reverse()
    while stack:
        entry, depth = stack.pop()
        yield Entry(entry.host, entry.process, depth)
        below = children.get((entry.host.label, entry.process.pid), [])
        stack += [(child, depth + 1) for child in reversed(below)]


def wants(frame: Frame, room: Room, *, shown: bool = True) -> Wants:
    """What the others leave, if that is at least a few lines."""
    if not shown:
        return HIDDEN
    count = sum(len(host.snapshot.processes) for host in frame.hosts if host.snapshot)
    return Wants((0,), most=max(4, min(1 + count, 9)), smallest=4, takes_rest=True)


def table(frame: Frame, room: Room, order: Order, gpu: str | None = None, *, brief: bool = False) -> Block:
    """All processes, or those on one GPU; with `brief`, as many as fit."""
    shown = [one for one in entries(frame, order) if gpu is None or gpu in one.process.gpu_uuids]
    more = len(shown) - (room.height - 2) if brief and len(shown) > room.height - 1 else 0
    cells = [(entry, _cells(entry)) for entry in shown[: len(shown) - more]]
    gap = gap_for(room.width)
    columns = [column for column in COLUMNS if column.name != "host" or frame.several]
    layout = chosen(occupied(columns, [made for _, made in cells]), room.width - 2, gap)
    head = heading(layout, sort=order.sort, reverse=order.reverse, gap=gap, lead=1)
    rows = [_row(layout, *one, gap) for one in cells]
    if more:
        return Block((head,), (*rows, line(Span(f"   {more} more: press p", "dim"), width=room.width)))
    return Block((head,), (*rows, *_footnotes(frame, order, room, len(rows))))


def _footnotes(frame: Frame, order: Order, room: Room, count: int) -> list[Line]:
    left = sum(host.snapshot.dropped.get("processes", 0) for host in frame.hosts if host.snapshot)
    notes = [f"{left} more processes left out by the daemon's cap"] if left else []
    if not count:
        notes.append(
            f"no process matches “{order.text}”" if order.text else "no training process, nothing on a GPU"
        )
    return [line(Span(f"   {note}", "dim"), width=room.width) for note in notes]


def key_of(entry: Entry) -> Hashable:
    return ("process", entry.host.label, entry.process.pid, entry.process.started)


def _row(layout: Layout, entry: Entry, cells: dict[str, Cell], gap: int) -> Line:
    made = row(layout, cells, key=key_of(entry), gap=gap, lead=" ")
    return made if entry.host.current else made.dimmed()


def _cells(entry: Entry) -> dict[str, Cell]:
    p, on_gpu = entry.process, bool(entry.process.gpu_indices)
    role = "dim" if p.role == "worker" else ""
    branch = "  " * (entry.depth - 1) + "└ " if entry.depth else ""
    none = Span(units.ABSENT, "faint")
    return {
        "pid": Span(str(p.pid), role or "strong"),
        "host": clip(entry.host.label, 10),
        "user": Span(p.user or units.ABSENT, role),
        "gpu": ",".join(map(str, p.gpu_indices)) or none,
        "gpumem": units.size(p.gpu_memory_bytes) if on_gpu else none,
        "sm": units.tight_percent(p.gpu_sm_ratio) if on_gpu else none,
        "cpu": Span(units.tight_percent(p.cpu_ratio), role),
        "rss": Span(units.size(p.rss_bytes), role),
        "read": Span(units.rate(p.read_bytes_per_second), "dim"),
        "role": Span(word(p.role), role),
        "run": Span(p.run_label or "", "dim"),
        "where": Span(entry.job, "dim"),
        "age": Span(units.age(p.age_seconds), "dim"),
        "command": [Span(branch, "faint"), Span(p.command or p.name or units.ABSENT, role)],
    }

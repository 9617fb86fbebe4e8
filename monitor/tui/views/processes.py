"""Processes: sorted, filtered, as a list or as a tree of trainers and their workers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from monitor.snapshot import Gpu, GpuProcess, Process, Snapshot
from monitor.tui import format as show
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.table import Column, Layout, chosen, heading, row
from monitor.tui.text import Block, Cell, Line, Span, clip, line
from monitor.tui.widgets.panel import Room

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
    """A process joined with what the driver says about it."""

    host: HostFrame
    process: Process
    gpus: tuple[tuple[Gpu, GpuProcess], ...]
    depth: int = 0

    @property
    def gpu_memory(self) -> int | None:
        known = [used.memory_bytes for _, used in self.gpus if used.memory_bytes is not None]
        return sum(known) if known else None

    @property
    def sm(self) -> float | None:
        known = [used.sm_ratio for _, used in self.gpus if used.sm_ratio is not None]
        return max(known) if known else None

    @property
    def job(self) -> str:
        p = self.process
        parts = (p.container, p.pod, f"slurm {p.slurm_job}" if p.slurm_job else None)
        return " ".join(part for part in parts if part)


SORTS: dict[str, Callable[[Entry], Any]] = {
    "pid": lambda e: e.process.pid,
    "user": lambda e: e.process.user,
    "gpu": lambda e: e.gpus[0][0].index if e.gpus else None,
    "gpumem": lambda e: e.gpu_memory,
    "sm": lambda e: e.sm,
    "cpu": lambda e: e.process.cpu_ratio,
    "rss": lambda e: e.process.rss_bytes,
    "read": lambda e: e.process.read_bytes_per_second,
    "run": lambda e: e.process.run,
    "age": lambda e: e.process.started,
    "command": lambda e: e.process.command,
}


def entries(frame: Frame, order: Order) -> list[Entry]:
    """What is shown, in the order it is shown."""
    found = [entry for host in frame.hosts if host.snapshot for entry in _joined(host, host.snapshot)]
    found = [entry for entry in found if matches(entry, order.text)]
    found.sort(key=lambda e: e.process.pid)
    value = SORTS[order.sort]
    known = sorted((e for e in found if value(e) is not None), key=value, reverse=order.reverse)
    ordered = known + [e for e in found if value(e) is None]
    return list(_tree(ordered)) if order.tree else ordered


def _joined(host: HostFrame, snapshot: Snapshot) -> Iterator[Entry]:
    """Known processes, then those only the driver knows of (another namespace, no permission)."""
    on: dict[int, list[tuple[Gpu, GpuProcess]]] = {}
    for gpu in snapshot.gpus:
        for used in gpu.processes:
            on.setdefault(used.pid, []).append((gpu, used))
    for process in snapshot.processes:
        yield Entry(host, process, tuple(on.pop(process.pid, ())))
    for pid, uses in on.items():
        yield Entry(host, Process(pid, role="gpu"), tuple(uses))


def matches(entry: Entry, text: str) -> bool:
    """Every word of the filter must occur somewhere in the row."""
    p = entry.process
    where = " ".join(
        str(v) for v in (p.pid, p.user, p.name, p.command, p.role, p.run, entry.job) if v
    ).lower()
    return all(word in where for word in text.lower().split())


def _tree(ordered: list[Entry]) -> Iterator[Entry]:
    """Children under their parents, depth first; the order among siblings is kept."""
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
        yield Entry(entry.host, entry.process, entry.gpus, depth)
        below = children.get((entry.host.label, entry.process.pid), [])
        stack += [(child, depth + 1) for child in reversed(below)]


def table(frame: Frame, room: Room, order: Order, gpu: str | None = None, *, brief: bool = False) -> Block:
    """The processes, all of them or those on one GPU; brief: as many as there is room for."""
    shown = [e for e in entries(frame, order) if gpu is None or any(g.uuid == gpu for g, _ in e.gpus)]
    gap = 1 if room.width < 100 else 2
    layout = chosen([c for c in COLUMNS if c.name != "host" or frame.several], room.width - 2, gap)
    head = heading(layout, sort=order.sort, reverse=order.reverse, gap=gap, lead=1)
    more = len(shown) - (room.height - 2) if brief and len(shown) > room.height - 1 else 0
    rows = [_row(layout, entry, frame, gap) for entry in shown[: len(shown) - more]]
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


def _row(layout: Layout, entry: Entry, frame: Frame, gap: int) -> Line:
    made = row(layout, _cells(entry, frame), key=key_of(entry), gap=gap, lead=" ")
    return made if entry.host.current else made.dimmed()


def _cells(entry: Entry, frame: Frame) -> dict[str, Cell]:
    p = entry.process
    role = "dim" if p.role == "worker" else ""
    branch = "  " * (entry.depth - 1) + "└ " if entry.depth else ""
    return {
        "pid": Span(str(p.pid), role or "strong"),
        "host": clip(entry.host.label, 10),
        "user": Span(p.user or show.ABSENT, role),
        "gpu": ",".join(str(gpu.index) for gpu, _ in entry.gpus) or Span(show.ABSENT, "faint"),
        "gpumem": show.size(entry.gpu_memory) if entry.gpus else Span(show.ABSENT, "faint"),
        "sm": show.percent(entry.sm) if entry.gpus else Span(show.ABSENT, "faint"),
        "cpu": Span(show.percent(p.cpu_ratio), role),
        "rss": Span(show.size(p.rss_bytes), role),
        "read": Span(show.rate(p.read_bytes_per_second), "dim"),
        "role": Span(p.role, role),
        "run": Span(run_words(entry), "dim"),
        "where": Span(entry.job, "dim"),
        "age": Span(show.age(frame.now.wall - p.started) if p.started else show.ABSENT, "dim"),
        "command": [Span(branch, "faint"), Span(p.command or p.name or show.ABSENT, role)],
    }


def run_words(entry: Entry) -> str:
    p = entry.process
    if p.run is None or entry.host.snapshot is None:
        return ""
    run = next((r for r in entry.host.snapshot.runs if r.id == p.run), None)
    name = run.name if run else p.run
    return f"{name} r{p.rank}" if p.rank is not None and run and run.world_size > 1 else name

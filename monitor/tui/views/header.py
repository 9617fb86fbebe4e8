"""The line at the top of every screen: where we are, and how current the data is."""

from __future__ import annotations

from monitor.language import said, word
from monitor.model import units
from monitor.model.gpu import Gpu
from monitor.model.snapshot import Snapshot
from monitor.tui.frame import Frame, HostFrame, Link
from monitor.tui.pick import ALL, Pick
from monitor.tui.text import Block, Line, Room, Span, cells, clip, fit, line, width_of
from monitor.tui.views.symbols import Symbol

LINKS: dict[Link, Symbol] = {
    "live": Symbol("●", "live", "good"),
    "waiting": Symbol("◌", "waiting", "dim"),
    "stale": Symbol("◌", "stale", "warn"),
    "down": Symbol("✕", "disconnected", "alarm"),
}
"""The state of a host's connection, worst last."""


def header(frame: Frame, room: Room, title: str = "", pick: Pick = ALL) -> Block:
    """One line: name, screen, host, its hardware, and on the right how current the data is."""
    right = _status(frame, pick)
    left = [Span(" gpumon ", "title"), *_title(title)]
    space = max(0, room.width - width_of(right) - 1)
    left += _hosts(frame, space - width_of(left))
    return Block((line(fit(left, space), Span(" "), right, width=room.width),))


def _title(title: str) -> list[Span]:
    return [Span("▸ ", "faint"), Span(f"{title}  ", "strong")] if title else []


def _hosts(frame: Frame, width: int) -> list[Span]:
    """The host and as much about it as there is room for: each part is shown whole or not at all."""
    if frame.several:
        answering = sum(host.link == "live" for host in frame.hosts)
        return [Span(f"{answering} of {len(frame.hosts)} hosts answer", "dim")]
    snapshot = frame.hosts[0].snapshot if frame.hosts else None
    if snapshot is None:
        return [Span(frame.hosts[0].label if frame.hosts else "", "dim")]
    name, parts = Span(snapshot.host.hostname, "strong"), list(map(said, _machine(snapshot)))
    while parts and width_of([name]) + 2 + cells(" · ".join(parts)) > width:
        parts.pop()
    return [name, Span("  " + " · ".join(parts), "dim")]


def _machine(snapshot: Snapshot) -> list[str]:
    parts = [_gpu_names(snapshot.gpus)] if snapshot.gpus else ["no GPU"]
    cpu, memory = snapshot.host.cpu, snapshot.host.memory
    if cpu is not None:
        parts.append(f"CPU {units.percent(cpu.utilization_ratio)} of {cpu.cores}")
    if memory is not None:
        parts.append(f"RAM {units.of(memory.used_bytes, memory.total_bytes)}")
    if snapshot.source.driver_version:
        parts.append(f"driver {snapshot.source.driver_version}")
    return parts


def _gpu_names(gpus: tuple[Gpu, ...]) -> str:
    names = {gpu.name for gpu in gpus}
    name = (names.pop() or "GPU").removeprefix("NVIDIA ") if len(names) == 1 else "GPUs"
    return f"{len(gpus)} × {name}"


def _status(frame: Frame, pick: Pick) -> list[Span]:
    out: list[Span] = []
    if frame.simulated:
        out += [Span(word(" simulated "), "badge"), Span(" ")]
    if any(host.mode == "own" for host in frame.hosts):
        out += [Span("own readings ", "dim")]
    if frame.note:
        out += [Span(frame.note + " ", "accent")]
    if pick != ALL:
        out += [Span(f"{_picked(pick)} ", "accent")]
    if frame.paused:
        out += [Span(f"‖ {word('paused')} ", "warn")]
    out += _freshness(frame)
    return [*out, Span(units.clock(frame.now.wall) + " ", "dim")]


def _picked(pick: Pick) -> str:
    """ "/llama · mine · by use": the filter and the order."""
    parts = (
        f"/{pick.words}" if pick.words else "",
        word("mine") if pick.user is not None else "",
        word(f"by {pick.order}") if pick.order != ALL.order else "",
    )
    return " · ".join(part for part in parts if part)


def _freshness(frame: Frame) -> list[Span]:
    worst = max(frame.hosts, key=lambda host: list(LINKS).index(host.link), default=None)
    if worst is None or (worst.mode == "replay" and worst.link == "live"):
        return []
    symbol = LINKS[worst.link]
    if frame.several and not worst.current:
        silent = sum(not host.current for host in frame.hosts)
        return [symbol.span, Span(f" {silent} silent ", symbol.role)]
    age = f" {units.duration(worst.age)}" if worst.age is not None and not worst.current else ""
    return [symbol.span, Span(f" {symbol.word}{age} ", symbol.role if symbol.role != "good" else "dim")]


def silent_hosts(frame: Frame) -> list[HostFrame]:
    """Hosts that need a line of their own because their readings are old or missing."""
    return [host for host in frame.hosts if not host.current and (frame.several or host.snapshot is not None)]


def silent_lines(frame: Frame, room: Room) -> list[Line]:
    """A line for each such host, so that none is silently missing or mistaken for current."""
    out = []
    for host in silent_hosts(frame):
        symbol = LINKS[host.link]
        age = f", last readings {units.duration(host.age)} old" if host.age is not None else ""
        why = host.error or ("no answer yet" if host.snapshot is None else "")
        text = f"{host.label} {symbol.word}{age}{f': {why}' if why else ''}"
        lead = Span(f" {symbol.char} ", symbol.role)
        out.append(line(lead, clip(text, room.width - 4), width=room.width))
    return out

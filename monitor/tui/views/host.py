"""The rest of the machine: cores, memory, disks, network, and what tasks are waiting for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from monitor.language import cells, word
from monitor.model import units
from monitor.model.host import Cpu, Disk, Host, Memory, Network, Pressure
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.line_budget import HIDDEN, TALL, Wants
from monitor.tui.table import Column, Layout, chosen, gap_for, heading, occupied, row
from monitor.tui.text import Block, Cell, Line, Room, Span, beside, clip, line, shares
from monitor.tui.views.gpu_text import is_odd_tick
from monitor.tui.views.parts import back
from monitor.tui.widgets.graph import bar, framed, history, meters, round_up

LEAST, MOST = 4, 14
"""Lines of the panel for one host: text only, and with tall graphs."""
LINES_OF_TEXT = 3
CHARTS = 6
"""From this many lines there is room for graphs."""
COLUMNS = (
    Column("host", "Hosts", 14),
    Column("cores", "cores", 5, ">", drop=5),
    Column("cpu", "CPU", 4, ">"),
    Column("cpubar", "", 8, grow=1, most=30, drop=3),
    Column("memory", "memory", 12, ">"),
    Column("membar", "", 8, grow=1, most=30, drop=4),
    Column("waiting", "waiting for CPU, memory, disk", 29, drop=2),
    Column("disk", "disk", 20, drop=6),
    Column("network", "network", 20, drop=7),
)


def wants(frame: Frame, room: Room) -> Wants:
    """What the panels above leave: one line per host if there are several, graphs if there is one."""
    known = [host for host in frame.hosts if host.snapshot is not None and host.snapshot.host.cpu is not None]
    if not known:
        return HIDDEN
    if frame.several:
        return Wants((0,), most=1 + len(known), smallest=1 + len(known), spaced=True)
    return Wants((0,), most=MOST, smallest=LEAST, spaced=room.height >= TALL)


def table(frame: Frame, room: Room) -> Block:
    known = [host for host in frame.hosts if host.snapshot is not None]
    if frame.several:
        return _several(known, room)
    return _one(known[0], known[0].snapshot.host, room) if known and known[0].snapshot else Block()


# ── One host ─────────────────────────────────────────────────────────────────────────────────────


def _one(host: HostFrame, machine: Host, room: Room) -> Block:
    head = line(
        Span(f" {word('Host')}", "title"), Span(f"  {' · '.join(_facts(machine))}", "dim"), width=room.width
    )
    charts = _charts(host, machine, room) if room.height >= CHARTS else []
    lines = [*charts, *_words(machine, room)]
    return Block((head,), tuple(lines if host.current else (made.dimmed() for made in lines)))


def _facts(machine: Host) -> list[str]:
    cpu, memory = machine.cpu, machine.memory
    loads = (
        [units.number(load) for load in (cpu.load_1m, cpu.load_5m, cpu.load_15m) if load is not None]
        if cpu
        else []
    )
    limit = machine.cgroup.cpu_quota_cores
    parts = (
        f"{cpu.cores} cores" if cpu else "",
        f"load {' '.join(loads)}" if loads else "",
        f"limited to {units.number(limit)} cores" if limit is not None else "",
        f"swap {units.of(memory.swap_used_bytes, memory.swap_total_bytes)}"
        if memory and memory.swap_total_bytes
        else "",
        f"shared memory {units.size(machine.shm_free_bytes)} free"
        if machine.shm_free_bytes is not None
        else "",
        machine.kernel or "",
    )
    return [part for part in parts if part]


class Chart(NamedTuple):
    name: str
    value: str
    samples: Sequence[float | None]
    top: float
    high: str
    role: str = "info"
    dots: Sequence[float | None] = ()


def _charts(host: HostFrame, machine: Host, room: Room) -> list[Line]:
    """CPU, memory, disk and network side by side, as many as fit."""
    count = 4 if room.width >= 100 else 3 if room.width >= 76 else 2
    widths = shares(room.width - 2, count)
    height = room.height - 1 - LINES_OF_TEXT - 2
    if height < 1:
        return []
    shown = zip(_series(host, machine, widths[0] - 2), widths, strict=False)
    blocks = [_drawn(host, chart, width, height) for chart, width in shown]
    return [Line((Span(" "), *made.spans)) for made in beside(blocks, widths, gap=1)]


def _drawn(host: HostFrame, chart: Chart, width: int, height: int) -> list[Line]:
    head = (Span(f"{chart.name} ", "head"), Span(chart.value, "strong"))
    rows = history(chart.samples, width - 2, height, chart.top, dots=chart.dots, odd=is_odd_tick(host))
    drawn = [line(Span(text[:-1], chart.role), Span(text[-1:], chart.role)) for text in rows]
    return framed(head, chart.high, drawn, width, (back(host, len(chart.samples)), "now"))


def _series(host: HostFrame, machine: Host, width: int) -> list[Chart]:
    seen = host.recent_of_machine(2 * width)
    cpu, memory = machine.cpu, machine.memory
    total = memory.total_bytes if memory else None
    used = units.of(memory.used_bytes if memory else None, total)
    read, write = [r.read for r in seen], [r.write for r in seen]
    received, sent = [r.received for r in seen], [r.sent for r in seen]
    busiest, fastest = _top([*read, *write]), _top([*received, *sent])
    disk = in_out(machine.disk_read_bytes_per_second, machine.disk_write_bytes_per_second)
    network = in_out(machine.receive_bytes_per_second, machine.transmit_bytes_per_second)
    return [
        Chart(
            "CPU",
            units.percent(cpu.utilization_ratio if cpu else None),
            [r.cpu for r in seen],
            1.0,
            "100 %",
            "good",
        ),
        Chart("memory", used, [r.memory for r in seen], total or 1.0, units.size(total)),
        Chart("disk", disk, read, busiest, units.rate(busiest), "accent", write),
        Chart("net", network, received, fastest, units.rate(fastest), "dim", sent),
    ]


def _top(samples: Sequence[float | None]) -> float:
    return round_up(max((value for value in samples if value is not None), default=0.0))


def _words(machine: Host, room: Room) -> list[Line]:
    """Every core, every disk and network, and what the machine is waiting for."""
    waits = _waits(machine)
    devices = [*map(_disk, machine.disks), *map(_network, machine.networks)]
    return [
        _named("cores", [Span(_cores(machine.cpu, room.width - 14), "good")], room),
        _named(
            "waits for",
            [Span(" · ".join(waits) or "not reported by this kernel", "" if waits else "dim")],
            room,
        ),
        _named("devices", [Span("   ".join(devices) or units.ABSENT)], room),
    ]


def _named(name: str, content: Sequence[Span], room: Room) -> Line:
    return line(Span(f"   {cells.left(word(name), 10)} ", "dim"), *content, width=room.width)


def _cores(cpu: Cpu | None, width: int) -> str:
    return meters(cpu.per_core_ratio, width) if cpu and cpu.per_core_ratio else units.ABSENT


def _waits(machine: Host) -> list[str]:
    """Linux PSI: the share of the last ten seconds in which some task waited."""
    parts: tuple[tuple[str, Cpu | Memory | None], ...] = (("CPU", machine.cpu), ("memory", machine.memory))
    known = [(name, one.pressure) for name, one in parts if one is not None] + [("disk", machine.io_pressure)]
    return [f"{word(name)} {units.percent(p.some_ratio)}" for name, p in known if p.some_ratio is not None]


def _disk(disk: Disk) -> str:
    moved = in_out(disk.read_bytes_per_second, disk.write_bytes_per_second)
    return f"{disk.name} {units.percent(disk.busy_ratio)} busy {moved}"


def _network(network: Network) -> str:
    return f"{network.name} {in_out(network.receive_bytes_per_second, network.transmit_bytes_per_second)}"


def in_out(received: float | None, sent: float | None) -> str:
    return f"↓{units.rate(received)} ↑{units.rate(sent)}"


# ── Several ──────────────────────────────────────────────────────────────────────────────────────


def _several(hosts: Sequence[HostFrame], room: Room) -> Block:
    gap = gap_for(room.width)
    cells = [_cells(host, host.snapshot.host) for host in hosts if host.snapshot]
    layout = chosen(occupied(COLUMNS, cells), room.width - 2, gap)
    rows = [_row(layout, host, made, gap) for host, made in zip(hosts, cells, strict=True)]
    return Block((Line(heading(layout, gap=gap, lead=1).spans),), tuple(rows))


def _row(layout: Layout, host: HostFrame, cells: dict[str, Cell], gap: int) -> Line:
    machine = host.snapshot.host if host.snapshot else None
    if machine and machine.cpu and "cpubar" in layout:
        cells["cpubar"] = bar(machine.cpu.utilization_ratio, layout["cpubar"][1], "good")
    if machine and machine.memory and "membar" in layout:
        cells["membar"] = bar(machine.memory.used_ratio, layout["membar"][1], "info")
    made = row(layout, cells, gap=gap, lead=" ")
    return made if host.current else made.dimmed()


def _cells(host: HostFrame, machine: Host) -> dict[str, Cell]:
    cpu, memory = machine.cpu, machine.memory
    pressures = (
        cpu.pressure if cpu else Pressure(),
        memory.pressure if memory else Pressure(),
        machine.io_pressure,
    )
    waits = [units.percent(pressure.some_ratio) for pressure in pressures if pressure.some_ratio is not None]
    return {
        "host": Span(clip(host.label, 14), "strong"),
        "cores": str(cpu.cores) if cpu else "",
        "cpu": units.tight_percent(cpu.utilization_ratio if cpu else None),
        "memory": units.of(memory.used_bytes, memory.total_bytes) if memory else units.ABSENT,
        "waiting": ", ".join(waits),
        "disk": in_out(machine.disk_read_bytes_per_second, machine.disk_write_bytes_per_second),
        "network": in_out(machine.receive_bytes_per_second, machine.transmit_bytes_per_second),
    }

"""GPUs: a row each, two rows abreast when many must fit, or a card with tall graphs when few do."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from monitor.snapshot import Gpu, Snapshot
from monitor.tui import format as show
from monitor.tui.frame import Frame, HostFrame, Reading
from monitor.tui.table import Column, Layout, chosen, heading, row
from monitor.tui.text import Block, Cell, Line, Span, beside, clip, fit, line
from monitor.tui.views.marks import Mark, gpu_mark, runs_on, throttled
from monitor.tui.views.top import unreachable
from monitor.tui.widgets.graph import bar, history
from monitor.tui.widgets.panel import Room

COLUMNS = (
    Column("gpu", "GPUs", 6),
    Column("state", "", 9, drop=5),
    Column("use", "use", 4, ">"),
    Column("graph", "last minutes", 10, grow=2, most=60),
    Column("memory", "memory", 13, ">"),
    Column("membar", "", 8, drop=11, grow=1, most=16),
    Column("power", "power", 9, ">", drop=1),
    Column("temp", "temp", 4, ">"),
    Column("clock", "clock", 8, ">", drop=2),
    Column("reason", "held by", 11, drop=8),
    Column("sm", "SM", 4, ">", drop=12),
    Column("pcie", "PCIe ↓↑", 13, ">", drop=9),
    Column("nvlink", "NVLink ↓↑", 13, ">", drop=13),
    Column("procs", "proc", 4, ">", drop=10),
    Column("run", "run", 12, drop=6, grow=1, most=32),
)
NARROW = (
    Column("gpu", "GPUs", 5),
    Column("use", "use", 4, ">"),
    Column("graph", "", 6, grow=1, most=40),
    Column("full", "mem", 4, ">"),
    Column("watts", "power", 5, ">"),
    Column("temp", "°C", 4, ">"),
)
CARD = 6
LANES = 1.0e9


def table(frame: Frame, room: Room) -> Block:
    """Every GPU of every host in the room there is."""
    notes = unreachable(frame, room)
    entries = list(frame.gpus())
    height = room.height - len(notes)
    if not entries:
        return Block((line(Span(" GPUs", "title"), width=room.width),), (*notes, *_none(frame, room)))
    if height >= len(entries) * CARD and len(entries) <= 4:
        tall = height // len(entries)
        return Block((), (*notes, *(part for entry in entries for part in card(*entry, room, tall))))
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
    layout = chosen(NARROW, width - 2, 1)
    half = (len(entries) + 1) // 2
    sides = [[_row(frame, layout, *entry, 1) for entry in part] for part in (entries[:half], entries[half:])]
    head = beside([[heading(layout, gap=1, lead=1)]] * 2, (width, width))
    return Block((Line(head[0].spans),), (*notes, *beside(sides, (width, width))))


def key_of(host: HostFrame, gpu: Gpu) -> Hashable:
    return ("gpu", host.label, gpu.uuid)


def _row(frame: Frame, layout: Layout, host: HostFrame, gpu: Gpu, gap: int) -> Line:
    assert host.snapshot is not None
    mark = gpu_mark(gpu, host.snapshot)
    graph = layout.get("graph", (COLUMNS[3], 0))[1]
    cells = _cells(host, gpu, mark, graph)
    cells["membar"] = bar(memory_ratio(gpu), layout["membar"][1], "info") if "membar" in layout else ""
    made = row(layout, cells, key=key_of(host, gpu), gap=gap, lead=" ")
    return (
        made if host.current and gpu.state == "ok" else _outdated(made, mark if gpu.state != "ok" else None)
    )


def _outdated(made: Line, mark: Mark | None) -> Line:
    """Old readings are dim; the mark of a lost GPU keeps its role."""
    dim = made.dimmed()
    if mark is None:
        return dim
    parts = tuple(
        s if mark.symbol in s.text or mark.word in s.text else d
        for s, d in zip(made.spans, dim.spans, strict=True)
    )
    return Line(parts, dim.slots)


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
        "graph": Span(trail(host, gpu, graph), mark.role if mark.role != "dim" else "faint"),
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


def state_words(gpu: Gpu, mark: Mark) -> str:
    return f"{mark.word} {show.duration(gpu.age_seconds)}" if gpu.state != "ok" else mark.word


def memory_words(gpu: Gpu) -> str:
    return show.of(gpu.memory_used_bytes, gpu.memory_total_bytes)


def memory_ratio(gpu: Gpu) -> float | None:
    if gpu.memory_used_bytes is None or not gpu.memory_total_bytes:
        return None
    return gpu.memory_used_bytes / gpu.memory_total_bytes


def run_words(gpu: Gpu, snapshot: Snapshot) -> str:
    """The runs on a GPU, each with the rank it has there."""
    out = []
    for run in runs_on(gpu, snapshot):
        ranks = [str(rank.rank) for rank in run.ranks if rank.gpu_uuid == gpu.uuid]
        out.append(f"{run.name} r{','.join(ranks)}" if run.world_size > 1 and ranks else run.name)
    return ", ".join(out)


def pcie_limit(gpu: Gpu) -> float | None:
    """Bytes per second the link can carry each way, by its generation and width."""
    per_lane = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
    lane = per_lane.get(gpu.pcie.generation or 0)
    return None if lane is None or gpu.pcie.width is None else lane * gpu.pcie.width * LANES


def traffic(down: float | None, up: float | None, limit: float | None) -> str:
    """Both directions as a share of the link when it is known, else in bytes."""
    if down is None and up is None:
        return show.ABSENT
    if limit:
        return f"{_part(down, limit)} {_part(up, limit)}"
    return f"{show.rate(down)} {show.rate(up)}"


def _part(value: float | None, limit: float) -> str:
    return show.ABSENT if value is None else f"{value / limit * 100:.0f}%"


def trail(host: HostFrame, gpu: Gpu, width: int) -> str:
    return history([reading.use for reading in host.trails.get(gpu.uuid, ())], width)[0]


def card(host: HostFrame, gpu: Gpu, room: Room, tall: int = CARD) -> list[Line]:
    """Six lines or more: who it is, then use, memory, power and heat side by side with tall graphs."""
    assert host.snapshot is not None
    mark = gpu_mark(gpu, host.snapshot)
    title = line(*_card_title(host, gpu, mark), width=room.width, key=key_of(host, gpu))
    if gpu.mig:
        return [title, *mig_lines(gpu, room), line()]
    count = 4 if room.width >= 100 else 3
    width = (room.width - 3 - 2 * (count - 1)) // count
    columns = [_gauge(*gauge, width, tall - 3) for gauge in gauges(host, gpu, mark)[:count]]
    body = [Line((Span("   "), *made.spans)) for made in beside(columns, [width] * count)]
    lines = [title, *body, line()]
    return (
        lines
        if host.current and gpu.state == "ok"
        else [_outdated(title, mark), *(b.dimmed() for b in lines[1:])]
    )


def _card_title(host: HostFrame, gpu: Gpu, mark: Mark) -> list[Cell]:
    assert host.snapshot is not None
    where = (
        f"{host.label} "
        if host.label != host.snapshot.host.hostname and host.mode == "" and "/" not in host.label
        else ""
    )
    run = run_words(gpu, host.snapshot)
    held = throttled(gpu)
    return [
        " ",
        mark.span,
        Span(f" GPU {gpu.index}  ", "strong"),
        Span(where + (gpu.name or ""), "dim"),
        "  ",
        Span(state_words(gpu, mark), mark.role),
        Span(f" by {', '.join(held)}" if held and gpu.state == "ok" else "", mark.role),
        Span(f"  {gpu.state_detail}" if gpu.state_detail else "", "dim"),
        Span(f"  ▸ {run}" if run else "", "dim"),
    ]


Gauge = tuple[str, str, list[float | None], float, str]


def gauges(host: HostFrame, gpu: Gpu, mark: Mark) -> list[Gauge]:
    """Name, value, samples, range and role of each of the four graphs of a GPU."""
    seen: Sequence[Reading] = list(host.trails.get(gpu.uuid, ()))
    heat = gpu.temperature_slowdown_celsius or 100.0
    return [
        (
            "use",
            show.percent(gpu.utilization_ratio),
            [r.use for r in seen],
            1.0,
            mark.role if mark.role != "dim" else "info",
        ),
        ("memory", memory_words(gpu), [r.memory for r in seen], gpu.memory_total_bytes or 1.0, "info"),
        (
            "power",
            show.watts(gpu.power_watts, gpu.power_limit_watts),
            [r.power for r in seen],
            gpu.power_limit_watts or 1.0,
            "accent",
        ),
        (
            "heat",
            f"{show.celsius(gpu.temperature_celsius)}  {show.hertz(gpu.sm_clock_hertz)}",
            [r.temperature for r in seen],
            heat,
            "dim",
        ),
    ]


def _gauge(
    name: str, value: str, samples: list[float | None], top: float, role: str, width: int, height: int
) -> list[Line]:
    head = line(Span(f"{name} ", "head"), Span(value, "strong"), width=width)
    return [head, *(line(Span(text, role)) for text in history(samples, width, height, top))]


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

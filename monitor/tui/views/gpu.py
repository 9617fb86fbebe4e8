"""One GPU: everything the driver tells, its last minutes, when and why it was held back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monitor.snapshot import Errors, Gpu
from monitor.tui import format as show
from monitor.tui.frame import HostFrame, Reading
from monitor.tui.text import Line, Span, clip, fit, line
from monitor.tui.views.card import gauges, mig_lines
from monitor.tui.views.gpuwords import half, memory_words, pcie_limit, run_words, state_words, traffic
from monitor.tui.views.marks import REASONS, gpu_mark
from monitor.tui.views.remedy import section
from monitor.tui.views.rundetail import pairs_lines
from monitor.tui.widgets.graph import history
from monitor.tui.widgets.panel import Room

GUTTER = 12


def title(host: HostFrame, gpu: Gpu, room: Room) -> list[Line]:
    """Which GPU, what it does, and when its readings are old: how old."""
    assert host.snapshot is not None
    mark = gpu_mark(gpu, host.snapshot)
    facts = [
        gpu.architecture,
        f"compute {gpu.compute_capability}" if gpu.compute_capability else None,
        gpu.pci_bus_id,
        gpu.uuid,
    ]
    head = line(
        Span(f" {mark.symbol} ", mark.role),
        Span(f"GPU {gpu.index}  {gpu.name or ''}  ", "strong"),
        Span(state_words(gpu, mark), mark.role),
        Span(f"  {run_words(gpu, host.snapshot)}", "dim"),
        width=room.width,
    )
    lines = [head, line("   ", Span(clip(" · ".join(f for f in facts if f), room.width - 4), "dim"))]
    if gpu.state != "ok":
        text = f"   {gpu.state_detail or gpu.state}: readings below are {show.duration(gpu.age_seconds)} old"
        lines.append(line(Span(clip(text, room.width - 1), "alarm")))
    return lines


def graphs(host: HostFrame, gpu: Gpu, room: Room, height: int = 3) -> list[Line]:
    """Use, memory, power, heat, clock over the last minutes, each on its own fixed range."""
    assert host.snapshot is not None
    mark = gpu_mark(gpu, host.snapshot)
    width = room.width - GUTTER - 2
    seen = host.recent(gpu.uuid, 2 * width)
    tops = (
        "100%",
        show.size(gpu.memory_total_bytes),
        show.watts(gpu.power_limit_watts, None),
        show.celsius(gpu.temperature_slowdown_celsius),
    )
    lines: list[Line] = []
    for (name, value, samples, top, role), high in zip(gauges(host, gpu, mark, width), tops, strict=True):
        if any(sample is not None for sample in samples):
            lines += _graph(
                name.removesuffix(" was").capitalize(),
                value,
                history(samples, width, height, top, half=half(host)),
                high,
                role,
                room,
            )
    clock_top = gpu.sm_clock_max_hertz
    if clock_top and any(r.clock is not None for r in seen):
        rows = history([r.clock for r in seen], width, height, clock_top, half=half(host))
        lines += _graph("Clock", show.hertz(gpu.sm_clock_hertz), rows, show.hertz(clock_top), "dim", room)
    return [*lines, *_axis(host, width, len(seen)), line()] if lines else [section("No readings yet"), line()]


def _graph(name: str, value: str, rows: Sequence[str], high: str, role: str, room: Room) -> list[Line]:
    out = [line(Span(f" {name}", "title"), Span(f"  {value}", "strong"), width=room.width)]
    for index, text in enumerate(rows):
        label = high if index == 0 else "0" if index == len(rows) - 1 else ""
        out.append(
            line(fit(Span(label, "dim"), GUTTER - 1, ">"), " ", Span(text[:-1], role), Span(text[-1:], role))
        )
    return out


def _axis(host: HostFrame, width: int, seen: int) -> list[Line]:
    assert host.snapshot is not None
    back = show.duration(min(2 * width, seen) * host.snapshot.interval_seconds)
    text = f"{back} ago"
    return [line(" " * GUTTER, Span(text + " " * max(1, width - len(text) - 3) + "now", "dim"))]


def throttle(host: HostFrame, gpu: Gpu, room: Room) -> list[Line]:
    """When each reason held the clocks down, a cell a reading, the newest at the right."""
    seen: list[Reading] = list(host.trails.get(gpu.uuid, ()))
    lines = [section("Clocks held down by")]
    if gpu.throttle is None:
        return [*lines, line(Span("   this card does not tell", "dim")), line()]
    width = max(4, room.width - 18)
    reasons = sorted({name for reading in seen[-width:] for name in reading.throttle})
    for name in reasons:
        marks = "".join("█" if name in reading.throttle else "·" for reading in seen[-width:])
        active = bool(gpu.throttle.get(name))
        lines.append(
            line(
                "   ",
                fit(Span(REASONS.get(name, name), "strong" if active else "dim"), 14),
                Span(marks.rjust(width), "dim" if name == "gpu_idle" else "warn"),
            )
        )
    return [*lines, *([] if reasons else [line(Span("   nothing in the last minutes", "dim"))]), line()]


def readings(host: HostFrame, gpu: Gpu, room: Room) -> list[Line]:
    """Every figure; what the card does not tell is "—"."""
    parts = (("Use", _use(gpu)), ("Memory and power", _power(gpu)), ("Links", _links(gpu)))
    lines = [made for name, pairs in parts for made in (section(name), *pairs_lines(pairs, room), line())]
    if gpu.mig:
        lines += [section("MIG instances"), *mig_lines(gpu, room), line()]
    return [*lines, section("Errors"), *pairs_lines(_errors(gpu.errors), room), *_xids(gpu.errors), line()]


def _use(gpu: Gpu) -> Mapping[str, str]:
    a = gpu.activity
    return {
        "GPU": show.share(gpu.utilization_ratio),
        "SM active": show.share(a.sm_active_ratio),
        "SM occupancy": show.share(a.sm_occupancy_ratio),
        "tensor cores": show.share(a.tensor_active_ratio),
        "DRAM active": show.share(a.dram_active_ratio),
        "memory bus": show.share(gpu.memory_utilization_ratio),
        "encoder": show.share(gpu.encoder_utilization_ratio),
        "decoder": show.share(gpu.decoder_utilization_ratio),
    }


def _power(gpu: Gpu) -> Mapping[str, str]:
    energy = gpu.energy_joules
    return {
        "memory": memory_words(gpu),
        "reserved": show.size(gpu.memory_reserved_bytes),
        "power": show.watts(gpu.power_watts, gpu.power_limit_watts),
        "energy": show.ABSENT if energy is None else f"{energy / 3.6e6:.1f} kWh",
        "temperature": show.celsius(gpu.temperature_celsius),
        "slows down at": show.celsius(gpu.temperature_slowdown_celsius),
        "memory temp": show.celsius(gpu.memory_temperature_celsius),
        "fan": show.share(gpu.fan_ratio),
        "SM clock": show.hertz(gpu.sm_clock_hertz),
        "SM clock max": show.hertz(gpu.sm_clock_max_hertz),
        "memory clock": show.hertz(gpu.memory_clock_hertz),
        "P-state": show.ABSENT if gpu.pstate is None else f"P{gpu.pstate}",
    }


def _links(gpu: Gpu) -> Mapping[str, str]:
    p, n = gpu.pcie, gpu.nvlink
    link = show.ABSENT if p.generation is None else f"gen{p.generation} ×{p.width}"
    best = show.ABSENT if p.generation_max is None else f"gen{p.generation_max} ×{p.width_max}"
    return {
        "PCIe": link,
        "PCIe could be": best,
        "PCIe in": show.rate(p.receive_bytes_per_second),
        "PCIe out": show.rate(p.transmit_bytes_per_second),
        "PCIe of link": traffic(p.receive_bytes_per_second, p.transmit_bytes_per_second, pcie_limit(gpu)),
        "replays": show.count(p.replays),
        "NVLinks up": show.count(n.links_active),
        "NVLink in": show.rate(n.receive_bytes_per_second),
        "NVLink out": show.rate(n.transmit_bytes_per_second),
    }


def _errors(errors: Errors) -> Mapping[str, str]:
    def flag(value: bool | None) -> str:
        return show.ABSENT if value is None else "yes" if value else "no"

    return {
        "ECC corrected": show.count(errors.ecc_corrected_volatile),
        "ECC uncorrected": show.count(errors.ecc_uncorrected_volatile),
        "corrected, ever": show.count(errors.ecc_corrected_aggregate),
        "uncorrected, ever": show.count(errors.ecc_uncorrected_aggregate),
        "rows remapped": show.count(errors.remapped_rows_uncorrected),
        "remap pending": flag(errors.remapped_rows_pending),
        "remap failed": flag(errors.remapped_rows_failed),
        "pages retired": show.count(errors.retired_pages_double_bit),
    }


def _xids(errors: Errors) -> list[Line]:
    if not errors.xid_counts:
        return [line(Span("   no XID event seen", "dim"))]
    seen = ", ".join(f"XID {code} × {times}" for code, times in errors.xid_counts.items())
    last = f", last at {show.clock(errors.xid_last_time)}" if errors.xid_last_time else ""
    return [line("   ", Span(f"✕ {seen}{last}", "alarm"))]

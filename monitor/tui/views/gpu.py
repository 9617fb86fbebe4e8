"""One GPU: all its readings, its last minutes, when and why it was throttled."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.language import word
from monitor.model import units
from monitor.model.gpu import Errors, Gpu
from monitor.tui.frame import HostFrame, Reading
from monitor.tui.text import Line, Room, Span, clip, fit, line
from monitor.tui.views.card import Gauge, gauge_lines, gauges, mig_lines
from monitor.tui.views.gpu_text import condition_text, memory_text, runs_text, traffic
from monitor.tui.views.parts import pairs_lines, section
from monitor.tui.views.symbols import GPU, REASONS


def title(host: HostFrame, gpu: Gpu, room: Room) -> list[Line]:
    """Which GPU, what it does, and if its readings are old, how old."""
    symbol = GPU[gpu.condition]
    facts = [
        gpu.architecture,
        f"compute {gpu.compute_capability}" if gpu.compute_capability else None,
        gpu.pci_bus_id,
        gpu.uuid,
    ]
    head = line(
        Span(f" {symbol.char} ", symbol.role),
        Span(f"GPU {gpu.index}  {gpu.name or ''}  ", "strong"),
        Span(condition_text(gpu), symbol.role),
        Span(f"  {runs_text(gpu)}", "dim"),
        width=room.width,
    )
    lines = [head, line("   ", Span(clip(" · ".join(f for f in facts if f), room.width - 4), "dim"))]
    if gpu.state != "ok":
        text = f"   {gpu.state_detail or gpu.state}: readings below are {units.duration(gpu.age_seconds)} old"
        lines.append(line(Span(clip(text, room.width - 1), "alarm")))
    return lines


def graphs(host: HostFrame, gpu: Gpu, room: Room, height: int = 3) -> list[Line]:
    """Use, memory, power, heat and clock over the last minutes, each on its own fixed range."""
    shown = [
        gauge
        for gauge in (*gauges(host, gpu, room.width - 4), *_clock(host, gpu, room.width - 4))
        if any(sample is not None for sample in gauge.samples)
    ]
    lines = [made for gauge in shown for made in gauge_lines(host, gpu, gauge, room.width - 2, height)]
    return (
        [*(Line((Span(" "), *made.spans)) for made in lines), line()]
        if lines
        else [section("No readings yet"), line()]
    )


def _clock(host: HostFrame, gpu: Gpu, width: int) -> list[Gauge]:
    top = gpu.sm_clock_max_hertz
    if top is None:
        return []
    seen = [reading.clock for reading in host.recent(gpu.uuid, 2 * width)]
    return [Gauge("clock", units.hertz(gpu.sm_clock_hertz), seen, top, units.hertz(top), "dim")]


def throttle(host: HostFrame, gpu: Gpu, room: Room) -> list[Line]:
    """When each reason held the clocks down: one cell per reading, newest on the right."""
    seen: list[Reading] = list(host.trails.get(gpu.uuid, ()))
    lines = [section("Clocks held down by")]
    if gpu.throttle is None:
        return [*lines, line(Span("   not reported by this card", "dim")), line()]
    width = max(4, room.width - 18)
    reasons = sorted({name for reading in seen[-width:] for name in reading.throttle})
    for name in reasons:
        marks = "".join("█" if name in reading.throttle else "·" for reading in seen[-width:])
        active = bool(gpu.throttle.get(name))
        lines.append(
            line(
                "   ",
                fit(Span(word(REASONS.get(name, name)), "strong" if active else "dim"), 14),
                Span(marks.rjust(width), "dim" if name == "gpu_idle" else "warn"),
            )
        )
    return [*lines, *([] if reasons else [line(Span("   nothing in the last minutes", "dim"))]), line()]


def readings(host: HostFrame, gpu: Gpu, room: Room) -> list[Line]:
    """Every figure; "—" for what the card does not report."""
    parts = (("Use", _use(gpu)), ("Memory and power", _power(gpu)), ("Links", _links(gpu)))
    lines = [made for name, pairs in parts for made in (section(name), *pairs_lines(pairs, room), line())]
    if gpu.mig:
        lines += [section("MIG instances"), *mig_lines(gpu, room), line()]
    return [*lines, section("Errors"), *pairs_lines(_errors(gpu.errors), room), *_xids(gpu.errors), line()]


def _use(gpu: Gpu) -> Mapping[str, str]:
    a = gpu.activity
    return {
        "GPU": units.percent(gpu.utilization_ratio),
        "SM active": units.percent(a.sm_active_ratio),
        "SM occupancy": units.percent(a.sm_occupancy_ratio),
        "tensor cores": units.percent(a.tensor_active_ratio),
        "DRAM active": units.percent(a.dram_active_ratio),
        "memory bus": units.percent(gpu.memory_utilization_ratio),
        "encoder": units.percent(gpu.encoder_utilization_ratio),
        "decoder": units.percent(gpu.decoder_utilization_ratio),
    }


def _power(gpu: Gpu) -> Mapping[str, str]:
    return {
        "memory": memory_text(gpu),
        "reserved": units.size(gpu.memory_reserved_bytes),
        "power": units.watts(gpu.power_watts, gpu.power_limit_watts),
        "energy": units.energy(gpu.energy_joules),
        "temperature": units.celsius(gpu.temperature_celsius),
        "slows down at": units.celsius(gpu.temperature_slowdown_celsius),
        "memory temp": units.celsius(gpu.memory_temperature_celsius),
        "fan": units.percent(gpu.fan_ratio),
        "SM clock": units.hertz(gpu.sm_clock_hertz),
        "SM clock max": units.hertz(gpu.sm_clock_max_hertz),
        "memory clock": units.hertz(gpu.memory_clock_hertz),
        "P-state": units.ABSENT if gpu.pstate is None else f"P{gpu.pstate}",
    }


def _links(gpu: Gpu) -> Mapping[str, str]:
    p, n = gpu.pcie, gpu.nvlink
    link = units.ABSENT if p.generation is None else f"gen{p.generation} ×{p.width}"
    best = units.ABSENT if p.generation_max is None else f"gen{p.generation_max} ×{p.width_max}"
    return {
        "PCIe": link,
        "PCIe could be": best,
        "PCIe in": units.rate(p.receive_bytes_per_second),
        "PCIe out": units.rate(p.transmit_bytes_per_second),
        "PCIe of link": traffic(p),
        "replays": units.count(p.replays),
        "NVLinks up": units.count(n.links_active),
        "NVLink in": units.rate(n.receive_bytes_per_second),
        "NVLink out": units.rate(n.transmit_bytes_per_second),
    }


def _errors(errors: Errors) -> Mapping[str, str]:
    def flag(value: bool | None) -> str:
        return units.ABSENT if value is None else "yes" if value else "no"

    return {
        "ECC corrected": units.count(errors.ecc_corrected_volatile),
        "ECC uncorrected": units.count(errors.ecc_uncorrected_volatile),
        "corrected, ever": units.count(errors.ecc_corrected_aggregate),
        "uncorrected, ever": units.count(errors.ecc_uncorrected_aggregate),
        "rows remapped": units.count(errors.remapped_rows_uncorrected),
        "remap pending": flag(errors.remapped_rows_pending),
        "remap failed": flag(errors.remapped_rows_failed),
        "pages retired": units.count(errors.retired_pages_double_bit),
    }


def _xids(errors: Errors) -> list[Line]:
    if not errors.xid_counts:
        return [line(Span("   no XID event seen", "dim"))]
    seen = ", ".join(f"XID {code} × {times}" for code, times in errors.xid_counts.items())
    last = f", last at {units.clock(errors.xid_last_time)}" if errors.xid_last_time else ""
    return [line("   ", Span(f"✕ {seen}{last}", "alarm"))]

"""What a simulated card shows: every reading a real one could give, derived from its state.

Rounded as a driver would, and every name contains "simulated".
"""

from __future__ import annotations

from monitor.gpu import physics
from monitor.gpu.physics import Card
from monitor.gpu.scenario import Forces
from monitor.gpu.workload import Load
from monitor.model.gpu import THROTTLE_REASONS, Activity, Errors, Gpu, GpuProcess, Nvlink, Pcie, Range

NAME = "gpumon simulated GPU 80GB"
PCIE_GENERATION, PCIE_WIDTH = 5, 16
PCIE_LANE_BYTES = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.97e9, 5: 3.94e9, 6: 7.56e9, 7: 15.1e9}
NVLINKS, NVLINK_BYTES = 18, 25e9


def limit_watts(forces: Forces) -> float:
    return min(physics.LIMIT_WATTS, forces.power_limit or physics.LIMIT_WATTS)


def describe(
    index: int,
    uuid: str,
    card: Card,
    loads: list[Load],
    forces: Forces,
    *,
    errors: Errors,
    ranges: dict[str, Range],
) -> Gpu:
    """The card's state as a snapshot shows it."""
    return Gpu(
        index=index,
        uuid=uuid,
        name=NAME,
        simulated=True,
        pci_bus_id=f"0000:{index + 16:02X}:00.0",
        minor=index,
        architecture="simulated",
        compute_capability="9.0",
        utilization_ratio=round(card.use, 2),
        memory_utilization_ratio=round(0.55 * card.use, 2),
        encoder_utilization_ratio=0.0,
        decoder_utilization_ratio=0.0,
        memory_used_bytes=_memory_used(loads, forces),
        memory_total_bytes=physics.MEMORY_TOTAL,
        memory_reserved_bytes=physics.MEMORY_RESERVED,
        memory_free_bytes=physics.MEMORY_TOTAL - physics.MEMORY_RESERVED - _memory_used(loads, forces),
        power_watts=round(card.power, 2),
        power_limit_watts=limit_watts(forces),
        power_default_watts=physics.LIMIT_WATTS,
        energy_joules=round(card.energy, 3),
        temperature_celsius=float(round(card.temperature)),
        temperature_slowdown_celsius=physics.SLOWDOWN,
        temperature_shutdown_celsius=physics.SHUTDOWN,
        memory_temperature_celsius=float(round(card.memory_temperature)),
        memory_temperature_limit_celsius=physics.MEMORY_LIMIT,
        sm_clock_hertz=float(round(card.clock / 15e6) * 15e6),
        sm_clock_max_hertz=physics.SM_MAX,
        memory_clock_hertz=card.memory_clock,
        memory_clock_max_hertz=physics.MEM_MAX,
        graphics_clock_hertz=float(round(card.clock / 15e6) * 15e6),
        compute_mode="default",
        recovery_action="none",
        virtualization="none",
        pstate=card.pstate,
        fan_ratio=round(card.fan, 2),
        throttle=_throttle(card, forces),
        pcie=_pcie(card, loads, forces),
        nvlink=_nvlink(card, loads),
        errors=errors,
        activity=_activity(card, loads),
        mig_enabled=False,
        processes=_processes(card, loads),
        ranges=ranges,
    )


def _memory_used(loads: list[Load], forces: Forces) -> int:
    room = physics.MEMORY_TOTAL - physics.MEMORY_RESERVED
    used = physics.MEMORY_IDLE + sum(load.memory for load in loads)
    return int(min(room, max(used, forces.memory * physics.MEMORY_TOTAL)))


def _throttle(card: Card, forces: Forces) -> dict[str, bool]:
    active = set(forces.reasons)
    if card.use < 0.02:
        active.add("gpu_idle")
    if card.capped:
        active.add("sw_power_cap")
    if card.thermal:
        active.add("sw_thermal_slowdown")
    return {reason: reason in active for reason in THROTTLE_REASONS}


def _pcie(card: Card, loads: list[Load], forces: Forces) -> Pcie:
    """An idle link drops to generation 1 to save power, as real ones do; the width stays."""
    generation = forces.pcie_generation or (PCIE_GENERATION if card.use >= 0.02 else 1)
    width = forces.pcie_width or PCIE_WIDTH
    full = PCIE_LANE_BYTES[generation] * width
    share = min(1.0, sum(load.transfer for load in loads)) if card.use >= 0.02 else 0.0
    return Pcie(
        generation=generation,
        generation_max=PCIE_GENERATION,
        width=width,
        width_max=PCIE_WIDTH,
        receive_bytes_per_second=round(0.8 * full * share, 0),
        transmit_bytes_per_second=round(0.05 * full * share, 0),
        replays=0,
    )


def _nvlink(card: Card, loads: list[Load]) -> Nvlink:
    """Traffic while ranks of one run exchange gradients; a lone rank has no peer."""
    talking = any(load.ranks > 1 for load in loads)
    flow = 0.2 * NVLINKS * NVLINK_BYTES * card.use if talking else 0.0
    return Nvlink(
        links_active=NVLINKS,
        transmit_bytes_per_second=flow,
        receive_bytes_per_second=flow,
        bandwidth_bytes_per_second=NVLINKS * NVLINK_BYTES,
    )


def _activity(card: Card, loads: list[Load]) -> Activity:
    tensor = 0.42 if any(load.tensor for load in loads) else 0.02
    return Activity(
        sm_active_ratio=round(0.88 * card.use, 3),
        sm_occupancy_ratio=round(0.41 * card.use, 3),
        tensor_active_ratio=round(tensor * card.use, 3),
        dram_active_ratio=round(0.47 * card.use, 3),
        graphics_active_ratio=round(card.use, 3),
        fp64_active_ratio=0.0,
        fp32_active_ratio=round(0.15 * card.use, 3),
        fp16_active_ratio=round(0.07 * card.use, 3),
    )


def _processes(card: Card, loads: list[Load]) -> tuple[GpuProcess, ...]:
    """The ranks on this card; its use is split in proportion to what each asked for."""
    wanted = sum(load.busy for load in loads)
    return tuple(
        GpuProcess(
            pid=load.pid,
            memory_bytes=load.memory,
            sm_ratio=round(card.use * load.busy / wanted, 3) if wanted else 0.0,
        )
        for load in loads
    )

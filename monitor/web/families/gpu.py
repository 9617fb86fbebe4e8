"""GPU families. Hot series carry uuid and gpu only; the rest is on `gpumon_gpu_info`.

A GPU that is lost or hung keeps `gpumon_gpu_up` at 0 and its info; its last readings are not shown
as current ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from monitor.model.gpu import Errors, MigInstance, Range
from monitor.web.families.base import Column, Family, Kind, Labels, Read, Sample, Scene

LABELS = ("uuid", "gpu")
EACH = "1 per GPU"


def of(
    name: str,
    kind: Kind,
    help: str,
    path: str,
    source: str,
    value: Callable[[Any], float | None] | None = None,
) -> Family:
    """A family with one value per GPU that answers: the attribute at `path`."""
    column = Column("gpus", path)
    return _family(name, kind, help, LABELS, column, column.one_each(value), source, EACH)


def each(
    name: str,
    kind: Kind,
    help: str,
    label: str,
    path: str,
    values: Callable[[Any], Iterable[tuple[str, float | None]]],
    source: str,
    cost: str,
) -> Family:
    """A family with several values per GPU, told apart by one more label, made of the attribute at `path`."""
    column = Column("gpus", path)
    return _family(name, kind, help, (*LABELS, label), column, column.some_each(values), source, cost)


def _family(
    name: str, kind: Kind, help: str, labels: Labels, column: Column, read: Read, source: str, cost: str
) -> Family:
    return Family(f"gpumon_gpu_{name}", kind, help, labels, read, f"NVML {source}", cost, column=column)


def one_of(name: str, help: str, label: str, path: str, source: str) -> Family:
    """A family that names the one of several conditions a GPU is in."""
    return each(name, "gauge", help, label, path, _named, source, EACH)


def _named(condition: str | None) -> Iterable[tuple[str, float | None]]:
    return () if condition is None else ((condition, 1.0),)


def _up(scene: Scene) -> Iterable[Sample]:
    return [((g.uuid, str(g.index)), float(g.state == "ok")) for g in scene.snapshot.gpus]


def _state(scene: Scene) -> Iterable[Sample]:
    for gpu in scene.snapshot.gpus:
        for state in ("ok", "lost", "hung", "error"):
            yield (gpu.uuid, str(gpu.index), state), float(gpu.state == state)


def _age(scene: Scene) -> Iterable[Sample]:
    return [((g.uuid, str(g.index)), g.age_seconds) for g in scene.snapshot.gpus]


INFO_LABELS = (*LABELS, "name", "architecture", "compute_capability", "pci_bus_id", "minor", "simulated")


def _info(scene: Scene) -> Iterable[Sample]:
    for gpu in scene.snapshot.gpus:
        minor = "" if gpu.minor is None else str(gpu.minor)
        kept = (gpu.name or "", gpu.architecture or "", gpu.compute_capability or "", gpu.pci_bus_id or "")
        yield (gpu.uuid, str(gpu.index), *kept, minor, str(gpu.simulated).lower()), 1.0


def _ecc(errors: Errors) -> Iterable[tuple[str, float | None]]:
    return (
        ("corrected_volatile", errors.ecc_corrected_volatile),
        ("uncorrected_volatile", errors.ecc_uncorrected_volatile),
        ("corrected_aggregate", errors.ecc_corrected_aggregate),
        ("uncorrected_aggregate", errors.ecc_uncorrected_aggregate),
    )


def _remapped(errors: Errors) -> Iterable[tuple[str, float | None]]:
    return (("corrected", errors.remapped_rows_corrected), ("uncorrected", errors.remapped_rows_uncorrected))


def _retired(errors: Errors) -> Iterable[tuple[str, float | None]]:
    return (("single_bit", errors.retired_pages_single_bit), ("double_bit", errors.retired_pages_double_bit))


def _throttle(reasons: dict[str, bool] | None) -> Iterable[tuple[str, float | None]]:
    return (reasons or {}).items()


def _low(ranges: dict[str, Range]) -> Iterable[tuple[str, float | None]]:
    return [(name, seen.min) for name, seen in ranges.items()]


def _high(ranges: dict[str, Range]) -> Iterable[tuple[str, float | None]]:
    return [(name, seen.max) for name, seen in ranges.items()]


def _mig(value: Callable[[MigInstance], float | None]) -> Callable[[Scene], Iterable[Sample]]:
    def read(scene: Scene) -> Iterable[Sample]:
        for labels, gpu in scene.gpus:
            for part in gpu.mig:
                yield (*labels, part.uuid, part.name or ""), value(part)

    return read


MIG_LABELS = (*LABELS, "mig_uuid", "mig")
MIG_COST = "1 per MIG instance"

FAMILIES = (
    Family("gpumon_gpu_info", "info", "What a GPU is; join the other series by uuid.", INFO_LABELS, _info, "NVML identity", EACH),
    Family("gpumon_gpu_up", "gauge", "1: the GPU answers; 0: it is lost, hung or in error and its readings are absent.", LABELS, _up, "the NVML gate", EACH),
    Family("gpumon_gpu_state", "gauge", "1 for the state the GPU is in.", (*LABELS, "state"), _state, "the NVML gate", "4 per GPU"),
    Family("gpumon_gpu_reading_age_seconds", "gauge", "Age of the newest readings of the GPU.", LABELS, _age, "the NVML gate", EACH),
    of("utilization_ratio", "gauge", "Share of time in which at least one kernel ran.", "utilization_ratio", "utilization rates"),
    of("memory_utilization_ratio", "gauge", "Share of time in which device memory was read or written.", "memory_utilization_ratio", "utilization rates"),
    of("encoder_utilization_ratio", "gauge", "Share of time the video encoder was busy.", "encoder_utilization_ratio", "encoder utilization"),
    of("decoder_utilization_ratio", "gauge", "Share of time the video decoder was busy.", "decoder_utilization_ratio", "decoder utilization"),
    of("sm_active_ratio", "gauge", "Share of SM cycles with at least one warp resident.", "activity.sm_active_ratio", "GPM"),
    of("sm_occupancy_ratio", "gauge", "Resident warps over the possible ones.", "activity.sm_occupancy_ratio", "GPM"),
    of("tensor_active_ratio", "gauge", "Share of cycles in which tensor cores worked.", "activity.tensor_active_ratio", "GPM"),
    of("dram_active_ratio", "gauge", "Share of cycles in which device memory moved data.", "activity.dram_active_ratio", "GPM"),
    of("graphics_active_ratio", "gauge", "Share of time in which any compute or graphics engine was active.", "activity.graphics_active_ratio", "GPM"),
    of("fp64_active_ratio", "gauge", "Share of cycles in which FP64 pipes worked, without tensor cores.", "activity.fp64_active_ratio", "GPM"),
    of("fp32_active_ratio", "gauge", "Share of cycles in which FP32 pipes worked, without tensor cores.", "activity.fp32_active_ratio", "GPM"),
    of("fp16_active_ratio", "gauge", "Share of cycles in which FP16 pipes worked, without tensor cores.", "activity.fp16_active_ratio", "GPM"),
    of("memory_used_bytes", "gauge", "Device memory in use.", "memory_used_bytes", "memory info"),
    of("memory_total_bytes", "gauge", "Device memory of the card.", "memory_total_bytes", "memory info"),
    of("memory_free_bytes", "gauge", "Device memory nobody has.", "memory_free_bytes", "memory info"),
    of("memory_reserved_bytes", "gauge", "Device memory the driver keeps for itself.", "memory_reserved_bytes", "memory info"),
    of("power_watts", "gauge", "Power drawn.", "power_watts", "power usage"),
    of("power_limit_watts", "gauge", "Power limit in force.", "power_limit_watts", "enforced power limit"),
    of("energy_joules_total", "counter", "Energy used since the driver was loaded.", "energy_joules", "total energy"),
    of("temperature_celsius", "gauge", "Core temperature.", "temperature_celsius", "temperature"),
    of("temperature_slowdown_celsius", "gauge", "Core temperature at which clocks are lowered.", "temperature_slowdown_celsius", "temperature thresholds"),
    of("temperature_shutdown_celsius", "gauge", "Core temperature at which the card shuts down.", "temperature_shutdown_celsius", "temperature thresholds"),
    of("memory_temperature_celsius", "gauge", "Memory temperature.", "memory_temperature_celsius", "memory temperature"),
    of("memory_temperature_limit_celsius", "gauge", "Memory temperature at which clocks are lowered.", "memory_temperature_limit_celsius", "temperature thresholds"),
    of("sm_clock_hertz", "gauge", "SM clock now.", "sm_clock_hertz", "clocks"),
    of("sm_clock_max_hertz", "gauge", "Highest SM clock.", "sm_clock_max_hertz", "clocks"),
    of("memory_clock_hertz", "gauge", "Memory clock now.", "memory_clock_hertz", "clocks"),
    of("memory_clock_max_hertz", "gauge", "Highest memory clock.", "memory_clock_max_hertz", "clocks"),
    of("graphics_clock_hertz", "gauge", "Graphics clock.", "graphics_clock_hertz", "clock info"),
    of("video_clock_hertz", "gauge", "Clock of the video engines.", "video_clock_hertz", "clock info"),
    of("pstate", "gauge", "Performance state, 0 is the fastest.", "pstate", "performance state"),
    of("fan_ratio", "gauge", "Fan speed over its maximum.", "fan_ratio", "fan speed"),
    each("throttle_active", "gauge", "1 while this reason lowers the clocks.", "reason", "throttle", _throttle, "throttle reasons", "9 per GPU"),
    each("throttle_seconds_total", "counter", "Time in which this reason lowered the clocks, since the driver was loaded.", "reason", "throttle_seconds", dict.items, "policy and clock event counters", "up to 9 per GPU"),
    one_of("compute_mode", "1 for the mode: who may compute on the GPU.", "mode", "compute_mode", "compute mode"),
    one_of("recovery_action", "1 for what the driver asks for to make the GPU whole again; none is good.", "action", "recovery_action", "recovery action"),
    one_of("fabric_state", "1 for the state of the registration with the NVLink fabric.", "state", "fabric_state", "fabric info"),
    one_of("fabric_health", "1 for the health of the NVLink fabric at this GPU.", "health", "fabric_health", "fabric info"),
    one_of("virtualization", "1 for how the GPU is virtualized.", "mode", "virtualization", "virtualization mode"),
    of("vgpus", "gauge", "Virtual GPUs that run on the GPU.", "vgpus", "active vGPUs"),
    of("vgpu_licensed", "gauge", "1: the virtual GPU is licensed.", "vgpu_licensed", "licensable features"),
    of("pcie_generation", "gauge", "PCIe generation of the link now.", "pcie.generation", "PCIe link"),
    of("pcie_generation_max", "gauge", "PCIe generation the link could have.", "pcie.generation_max", "PCIe link"),
    of("pcie_width_lanes", "gauge", "PCIe lanes of the link now.", "pcie.width", "PCIe link"),
    of("pcie_width_max_lanes", "gauge", "PCIe lanes the link could have.", "pcie.width_max", "PCIe link"),
    of("pcie_transmit_bytes_per_second", "gauge", "Bytes the GPU sends over PCIe.", "pcie.transmit_bytes_per_second", "PCIe throughput, on its own slow period"),
    of("pcie_receive_bytes_per_second", "gauge", "Bytes the GPU receives over PCIe.", "pcie.receive_bytes_per_second", "PCIe throughput, on its own slow period"),
    of("pcie_replays_total", "counter", "PCIe packets sent again.", "pcie.replays", "PCIe replay counter"),
    each("ecc_errors", "gauge", "Memory errors; volatile since driver load, aggregate over the card's life.", "type", "errors", _ecc, "ECC counters", "4 per GPU"),
    each("remapped_rows", "gauge", "Memory rows remapped.", "cause", "errors", _remapped, "remapped rows", "2 per GPU"),
    of("remapped_rows_pending", "gauge", "1: a row waits for a reset to be remapped.", "errors.remapped_rows_pending", "remapped rows"),
    of("remapped_rows_failed", "gauge", "1: a remapping failed, the card should be replaced.", "errors.remapped_rows_failed", "remapped rows"),
    each("retired_pages", "gauge", "Memory pages retired.", "cause", "errors", _retired, "retired pages", "2 per GPU"),
    of("retired_pages_pending", "gauge", "1: a page waits for a reboot to be retired.", "errors.retired_pages_pending", "retired pages"),
    each("xid_events_total", "counter", "XID events since the daemon started.", "xid", "errors.xid_counts", dict.items, "event set", "1 per XID code seen"),
    of("xid_last", "gauge", "Code of the newest XID event.", "errors.xid_last", "event set"),
    of("xid_last_timestamp_seconds", "gauge", "When the newest XID event came.", "errors.xid_last_time", "event set"),
    of("mig_enabled", "gauge", "1: the card is split into MIG instances.", "mig_enabled", "MIG mode"),
    Family("gpumon_gpu_mig_memory_used_bytes", "gauge", "Memory in use in a MIG instance.", MIG_LABELS, _mig(lambda m: m.memory_used_bytes), "NVML MIG memory info", MIG_COST),
    Family("gpumon_gpu_mig_memory_total_bytes", "gauge", "Memory of a MIG instance.", MIG_LABELS, _mig(lambda m: m.memory_total_bytes), "NVML MIG memory info", MIG_COST),
    of("processes", "gauge", "Processes on the GPU.", "processes", "running processes", len),
    each("reading_min", "gauge", "Lowest value between two snapshots of a reading sampled faster than them.", "reading", "ranges", _low, "fast sampling", "1 per fast reading and GPU"),
    each("reading_max", "gauge", "Highest value between two snapshots of a reading sampled faster than them.", "reading", "ranges", _high, "fast sampling", "1 per fast reading and GPU"),
)  # fmt: skip

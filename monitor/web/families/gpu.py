"""GPU families. Hot series carry uuid and gpu only; the rest is on `gpumon_gpu_info`.

A GPU that is lost or hung keeps `gpumon_gpu_up` at 0 and its info; its last readings are not shown
as current ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from monitor.model.gpu import Gpu, MigInstance
from monitor.web.families.base import Family, Kind, Sample, Scene

LABELS = ("uuid", "gpu")
EACH = "1 per GPU"


def of(
    name: str, kind: Kind, help: str, value: Callable[[Gpu], float | None], source: str, cost: str = EACH
) -> Family:
    """A family with one value per GPU that answers."""

    def read(scene: Scene) -> Iterable[Sample]:
        return [(labels, value(gpu)) for labels, gpu in scene.gpus]

    return Family(f"gpumon_gpu_{name}", kind, help, LABELS, read, f"NVML {source}", cost)


def each(
    name: str,
    kind: Kind,
    help: str,
    label: str,
    values: Callable[[Gpu], Iterable[tuple[str, float | None]]],
    source: str,
    cost: str,
) -> Family:
    """A family with several values per GPU, told apart by one more label."""

    def read(scene: Scene) -> Iterable[Sample]:
        for labels, gpu in scene.gpus:
            for key, value in values(gpu):
                yield (*labels, key), value

    return Family(f"gpumon_gpu_{name}", kind, help, (*LABELS, label), read, f"NVML {source}", cost)


def one_of(name: str, help: str, label: str, value: Callable[[Gpu], str | None], source: str) -> Family:
    """A family that names the one of several conditions a GPU is in."""

    def named(gpu: Gpu) -> Iterable[tuple[str, float | None]]:
        found = value(gpu)
        return () if found is None else ((found, 1.0),)

    return each(name, "gauge", help, label, named, source, EACH)


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


def _xids(gpu: Gpu) -> Iterable[tuple[str, float | None]]:
    return gpu.errors.xid_counts.items()


def _ecc(gpu: Gpu) -> Iterable[tuple[str, float | None]]:
    errors = gpu.errors
    return (
        ("corrected_volatile", errors.ecc_corrected_volatile),
        ("uncorrected_volatile", errors.ecc_uncorrected_volatile),
        ("corrected_aggregate", errors.ecc_corrected_aggregate),
        ("uncorrected_aggregate", errors.ecc_uncorrected_aggregate),
    )


def _remapped(gpu: Gpu) -> Iterable[tuple[str, float | None]]:
    errors = gpu.errors
    return (("corrected", errors.remapped_rows_corrected), ("uncorrected", errors.remapped_rows_uncorrected))


def _retired(gpu: Gpu) -> Iterable[tuple[str, float | None]]:
    errors = gpu.errors
    return (("single_bit", errors.retired_pages_single_bit), ("double_bit", errors.retired_pages_double_bit))


def _throttle(gpu: Gpu) -> Iterable[tuple[str, float | None]]:
    return (gpu.throttle or {}).items()


def _low(gpu: Gpu) -> Iterable[tuple[str, float | None]]:
    for name, seen in gpu.ranges.items():
        yield name, seen.min


def _high(gpu: Gpu) -> Iterable[tuple[str, float | None]]:
    for name, seen in gpu.ranges.items():
        yield name, seen.max


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
    of("utilization_ratio", "gauge", "Share of time in which at least one kernel ran.", lambda g: g.utilization_ratio, "utilization rates"),
    of("memory_utilization_ratio", "gauge", "Share of time in which device memory was read or written.", lambda g: g.memory_utilization_ratio, "utilization rates"),
    of("encoder_utilization_ratio", "gauge", "Share of time the video encoder was busy.", lambda g: g.encoder_utilization_ratio, "encoder utilization"),
    of("decoder_utilization_ratio", "gauge", "Share of time the video decoder was busy.", lambda g: g.decoder_utilization_ratio, "decoder utilization"),
    of("sm_active_ratio", "gauge", "Share of SM cycles with at least one warp resident.", lambda g: g.activity.sm_active_ratio, "GPM"),
    of("sm_occupancy_ratio", "gauge", "Resident warps over the possible ones.", lambda g: g.activity.sm_occupancy_ratio, "GPM"),
    of("tensor_active_ratio", "gauge", "Share of cycles in which tensor cores worked.", lambda g: g.activity.tensor_active_ratio, "GPM"),
    of("dram_active_ratio", "gauge", "Share of cycles in which device memory moved data.", lambda g: g.activity.dram_active_ratio, "GPM"),
    of("graphics_active_ratio", "gauge", "Share of time in which any compute or graphics engine was active.", lambda g: g.activity.graphics_active_ratio, "GPM"),
    of("fp64_active_ratio", "gauge", "Share of cycles in which FP64 pipes worked, without tensor cores.", lambda g: g.activity.fp64_active_ratio, "GPM"),
    of("fp32_active_ratio", "gauge", "Share of cycles in which FP32 pipes worked, without tensor cores.", lambda g: g.activity.fp32_active_ratio, "GPM"),
    of("fp16_active_ratio", "gauge", "Share of cycles in which FP16 pipes worked, without tensor cores.", lambda g: g.activity.fp16_active_ratio, "GPM"),
    of("memory_used_bytes", "gauge", "Device memory in use.", lambda g: g.memory_used_bytes, "memory info"),
    of("memory_total_bytes", "gauge", "Device memory of the card.", lambda g: g.memory_total_bytes, "memory info"),
    of("memory_free_bytes", "gauge", "Device memory nobody has.", lambda g: g.memory_free_bytes, "memory info"),
    of("memory_reserved_bytes", "gauge", "Device memory the driver keeps for itself.", lambda g: g.memory_reserved_bytes, "memory info"),
    of("power_watts", "gauge", "Power drawn.", lambda g: g.power_watts, "power usage"),
    of("power_limit_watts", "gauge", "Power limit in force.", lambda g: g.power_limit_watts, "enforced power limit"),
    of("energy_joules_total", "counter", "Energy used since the driver was loaded.", lambda g: g.energy_joules, "total energy"),
    of("temperature_celsius", "gauge", "Core temperature.", lambda g: g.temperature_celsius, "temperature"),
    of("temperature_slowdown_celsius", "gauge", "Core temperature at which clocks are lowered.", lambda g: g.temperature_slowdown_celsius, "temperature thresholds"),
    of("temperature_shutdown_celsius", "gauge", "Core temperature at which the card shuts down.", lambda g: g.temperature_shutdown_celsius, "temperature thresholds"),
    of("memory_temperature_celsius", "gauge", "Memory temperature.", lambda g: g.memory_temperature_celsius, "memory temperature"),
    of("memory_temperature_limit_celsius", "gauge", "Memory temperature at which clocks are lowered.", lambda g: g.memory_temperature_limit_celsius, "temperature thresholds"),
    of("sm_clock_hertz", "gauge", "SM clock now.", lambda g: g.sm_clock_hertz, "clocks"),
    of("sm_clock_max_hertz", "gauge", "Highest SM clock.", lambda g: g.sm_clock_max_hertz, "clocks"),
    of("memory_clock_hertz", "gauge", "Memory clock now.", lambda g: g.memory_clock_hertz, "clocks"),
    of("memory_clock_max_hertz", "gauge", "Highest memory clock.", lambda g: g.memory_clock_max_hertz, "clocks"),
    of("graphics_clock_hertz", "gauge", "Graphics clock.", lambda g: g.graphics_clock_hertz, "clock info"),
    of("video_clock_hertz", "gauge", "Clock of the video engines.", lambda g: g.video_clock_hertz, "clock info"),
    of("pstate", "gauge", "Performance state, 0 is the fastest.", lambda g: g.pstate, "performance state"),
    of("fan_ratio", "gauge", "Fan speed over its maximum.", lambda g: g.fan_ratio, "fan speed"),
    each("throttle_active", "gauge", "1 while this reason lowers the clocks.", "reason", _throttle, "throttle reasons", "9 per GPU"),
    each("throttle_seconds_total", "counter", "Time in which this reason lowered the clocks, since the driver was loaded.", "reason", lambda g: g.throttle_seconds.items(), "policy and clock event counters", "up to 9 per GPU"),
    one_of("compute_mode", "1 for the mode: who may compute on the GPU.", "mode", lambda g: g.compute_mode, "compute mode"),
    one_of("recovery_action", "1 for what the driver asks for to make the GPU whole again; none is good.", "action", lambda g: g.recovery_action, "recovery action"),
    one_of("fabric_state", "1 for the state of the registration with the NVLink fabric.", "state", lambda g: g.fabric_state, "fabric info"),
    one_of("fabric_health", "1 for the health of the NVLink fabric at this GPU.", "health", lambda g: g.fabric_health, "fabric info"),
    one_of("virtualization", "1 for how the GPU is virtualized.", "mode", lambda g: g.virtualization, "virtualization mode"),
    of("vgpus", "gauge", "Virtual GPUs that run on the GPU.", lambda g: g.vgpus, "active vGPUs"),
    of("vgpu_licensed", "gauge", "1: the virtual GPU is licensed.", lambda g: g.vgpu_licensed, "licensable features"),
    of("pcie_generation", "gauge", "PCIe generation of the link now.", lambda g: g.pcie.generation, "PCIe link"),
    of("pcie_generation_max", "gauge", "PCIe generation the link could have.", lambda g: g.pcie.generation_max, "PCIe link"),
    of("pcie_width_lanes", "gauge", "PCIe lanes of the link now.", lambda g: g.pcie.width, "PCIe link"),
    of("pcie_width_max_lanes", "gauge", "PCIe lanes the link could have.", lambda g: g.pcie.width_max, "PCIe link"),
    of("pcie_transmit_bytes_per_second", "gauge", "Bytes the GPU sends over PCIe.", lambda g: g.pcie.transmit_bytes_per_second, "PCIe throughput, on its own slow period"),
    of("pcie_receive_bytes_per_second", "gauge", "Bytes the GPU receives over PCIe.", lambda g: g.pcie.receive_bytes_per_second, "PCIe throughput, on its own slow period"),
    of("pcie_replays_total", "counter", "PCIe packets sent again.", lambda g: g.pcie.replays, "PCIe replay counter"),
    each("ecc_errors", "gauge", "Memory errors; volatile since driver load, aggregate over the card's life.", "type", _ecc, "ECC counters", "4 per GPU"),
    each("remapped_rows", "gauge", "Memory rows remapped.", "cause", _remapped, "remapped rows", "2 per GPU"),
    of("remapped_rows_pending", "gauge", "1: a row waits for a reset to be remapped.", lambda g: g.errors.remapped_rows_pending, "remapped rows"),
    of("remapped_rows_failed", "gauge", "1: a remapping failed, the card should be replaced.", lambda g: g.errors.remapped_rows_failed, "remapped rows"),
    each("retired_pages", "gauge", "Memory pages retired.", "cause", _retired, "retired pages", "2 per GPU"),
    of("retired_pages_pending", "gauge", "1: a page waits for a reboot to be retired.", lambda g: g.errors.retired_pages_pending, "retired pages"),
    each("xid_events_total", "counter", "XID events since the daemon started.", "xid", _xids, "event set", "1 per XID code seen"),
    of("xid_last", "gauge", "Code of the newest XID event.", lambda g: g.errors.xid_last, "event set"),
    of("xid_last_timestamp_seconds", "gauge", "When the newest XID event came.", lambda g: g.errors.xid_last_time, "event set"),
    of("mig_enabled", "gauge", "1: the card is split into MIG instances.", lambda g: g.mig_enabled, "MIG mode"),
    Family("gpumon_gpu_mig_memory_used_bytes", "gauge", "Memory in use in a MIG instance.", MIG_LABELS, _mig(lambda m: m.memory_used_bytes), "NVML MIG memory info", MIG_COST),
    Family("gpumon_gpu_mig_memory_total_bytes", "gauge", "Memory of a MIG instance.", MIG_LABELS, _mig(lambda m: m.memory_total_bytes), "NVML MIG memory info", MIG_COST),
    of("processes", "gauge", "Processes on the GPU.", lambda g: len(g.processes), "running processes"),
    each("reading_min", "gauge", "Lowest value between two snapshots of a reading sampled faster than them.", "reading", _low, "fast sampling", "1 per fast reading and GPU"),
    each("reading_max", "gauge", "Highest value between two snapshots of a reading sampled faster than them.", "reading", _high, "fast sampling", "1 per fast reading and GPU"),
)  # fmt: skip

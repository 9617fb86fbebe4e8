"""What a GPU reports about itself, and where the readings come from."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from monitor.model.finding import Severity

GpuState = Literal["ok", "lost", "hung", "error"]
"""Whether it answers."""
GpuCondition = Literal[
    "lost", "hung", "error", "stalled", "starved", "throttled",
    "busy", "part_busy", "in_use", "idle", "mig", "unknown",
]  # fmt: skip
"""How well it is used, worst first: see `monitor.model.facts`."""


class Range(Struct, frozen=True):
    """What a reading did between two ticks, if it is sampled faster than the tick."""

    min: float
    mean: float
    max: float
    samples: int


class Pcie(Struct, frozen=True):
    """The PCIe link as it is and as it could be; throughput is read on its own, slower period."""

    generation: int | None = None
    generation_max: int | None = None
    width: int | None = None
    width_max: int | None = None
    transmit_bytes_per_second: float | None = None
    receive_bytes_per_second: float | None = None
    replays: int | None = None
    limit_bytes_per_second: float | None = None
    """What the link can currently carry each way. Computed by `monitor.model.facts`, like the two ratios of
    it."""
    transmit_ratio: float | None = None
    receive_ratio: float | None = None


class NvlinkLink(Struct, frozen=True):
    """One NVLink link; counters since the driver was loaded."""

    link: int
    up: bool
    transmit_bytes: int | None = None
    receive_bytes: int | None = None
    errors: dict[str, int] = {}
    """Kind (crc_flit, crc_data, crc, replay, recovery) → count, for the kinds the card reports."""


class Nvlink(Struct, frozen=True):
    """NVLink links that are up, and the traffic over all of them."""

    links_active: int | None = None
    transmit_bytes_per_second: float | None = None
    receive_bytes_per_second: float | None = None
    bandwidth_bytes_per_second: float | None = None
    transmit_ratio: float | None = None
    """Of the bandwidth. Computed by `monitor.model.row_facts`, like the next field."""
    receive_ratio: float | None = None
    transmit_bytes: int | None = None
    """Counters over all links: the card's own sum, or ours where it reports none."""
    receive_bytes: int | None = None
    total_bytes: int | None = None
    """Both directions together. Computed by `monitor.model.row_facts`."""
    errors: dict[str, int] = {}
    links: tuple[NvlinkLink, ...] = ()


class Errors(Struct, frozen=True):
    """ECC counters, retired memory and XID events."""

    ecc_corrected_volatile: int | None = None
    ecc_uncorrected_volatile: int | None = None
    ecc_corrected_aggregate: int | None = None
    ecc_uncorrected_aggregate: int | None = None
    remapped_rows_corrected: int | None = None
    remapped_rows_uncorrected: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failed: bool | None = None
    retired_pages_single_bit: int | None = None
    retired_pages_double_bit: int | None = None
    retired_pages_pending: bool | None = None
    xid_counts: dict[str, int] = {}
    """XID code (as text: JSON keys are text) → how often it was seen since the daemon started."""
    xid_last: int | None = None
    xid_last_time: float | None = None


class Activity(Struct, frozen=True):
    """GPM (Hopper and newer): what the SMs really did, as ratios 0–1."""

    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    graphics_active_ratio: float | None = None
    """Any engine for compute or graphics."""
    fp64_active_ratio: float | None = None
    """This and the next two exclude tensor cores."""
    fp32_active_ratio: float | None = None
    fp16_active_ratio: float | None = None


class MigInstance(Struct, frozen=True):
    uuid: str
    name: str | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    memory_used_ratio: float | None = None
    """Computed by `monitor.model.row_facts`."""


class GpuProcess(Struct, frozen=True):
    """A process as the driver sees it; join with `Snapshot.processes` by pid."""

    pid: int
    kind: Literal["compute", "graphics", "mps"] = "compute"
    memory_bytes: int | None = None
    sm_ratio: float | None = None
    mig_uuid: str | None = None


class Holder(Struct, frozen=True):
    """A container or job that was assigned a GPU, or part of one, whether or not it computes there."""

    pod: str | None = None
    namespace: str | None = None
    container: str | None = None
    slurm_job: str | None = None
    mig_uuid: str | None = None
    shares: int = 1
    """How many of its time slices."""


class Alarm(Struct, frozen=True):
    """The most important finding about a GPU, if it calls for action."""

    id: str
    severity: Severity


class Gpu(Struct, frozen=True):
    """One GPU. If ``state`` is not "ok", the readings below are the last known ones, ``age_seconds`` old, and
    must not be shown as current."""

    index: int
    uuid: str
    name: str | None = None
    simulated: bool = False
    state: GpuState = "ok"
    state_detail: str | None = None
    age_seconds: float = 0.0
    pci_bus_id: str | None = None
    minor: int | None = None
    architecture: str | None = None
    compute_capability: str | None = None

    utilization_ratio: float | None = None
    memory_utilization_ratio: float | None = None
    encoder_utilization_ratio: float | None = None
    decoder_utilization_ratio: float | None = None

    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    memory_free_bytes: int | None = None

    power_watts: float | None = None
    power_limit_watts: float | None = None
    power_default_watts: float | None = None
    """The card's factory limit."""
    energy_joules: float | None = None

    temperature_celsius: float | None = None
    temperature_slowdown_celsius: float | None = None
    temperature_shutdown_celsius: float | None = None
    memory_temperature_celsius: float | None = None
    memory_temperature_limit_celsius: float | None = None

    sm_clock_hertz: float | None = None
    sm_clock_max_hertz: float | None = None
    memory_clock_hertz: float | None = None
    memory_clock_max_hertz: float | None = None
    graphics_clock_hertz: float | None = None
    video_clock_hertz: float | None = None

    pstate: int | None = None
    fan_ratio: float | None = None
    throttle: dict[str, bool] | None = None
    """Throttle reason → active now; None when the card does not say. Keys: `THROTTLE_REASONS`."""

    throttle_seconds: dict[str, float] = {}
    """Reason → seconds it has lowered the clocks since the driver was loaded; reasons the card does not count
    are missing. Keys: `monitor.gpu.fields.THROTTLE_TIMES`."""

    compute_mode: str | None = None
    recovery_action: str | None = None
    """What the driver asks for to restore the card; "none" is good news."""
    fabric_state: str | None = None
    """Registration with the NVLink fabric (NVSwitch systems). Values: `monitor.gpu.condition`."""
    fabric_health: str | None = None
    virtualization: str | None = None
    vgpus: int | None = None
    """Virtual GPUs running on this one."""
    vgpu_licensed: bool | None = None

    pcie: Pcie = Pcie()
    nvlink: Nvlink = Nvlink()
    errors: Errors = Errors()
    activity: Activity = Activity()
    mig_enabled: bool | None = None
    mig: tuple[MigInstance, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    holders: tuple[Holder, ...] = ()
    """From the kubelet and Slurm's job files."""
    ranges: dict[str, Range] = {}
    """Name of a field above → its range since the last tick, for fields sampled faster than the tick."""

    run_ids: tuple[str, ...] = ()
    """Live runs that compute here. Computed by `monitor.model.facts`, like the fields below."""
    run_labels: tuple[str, ...] = ()
    """The same by name, each with its ranks here: "resnet", "llama r3"."""
    run_memory_bytes: dict[str, int] = {}
    """Run → device memory its processes hold here."""
    users: tuple[str, ...] = ()
    """Owners of the runs and processes here."""
    alarm: Alarm | None = None
    """The first warning about this GPU or a run on it."""
    condition: GpuCondition = "unknown"
    throttled_by: tuple[str, ...] = ()
    """Active throttle reasons that cost speed."""
    memory_used_ratio: float | None = None


THROTTLE_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
)


class Source(Struct, frozen=True):
    """Where GPU readings come from or, if there are none, why."""

    kind: Literal["nvml", "simulated", "none"]
    ok: bool = True
    detail: str | None = None
    """One sentence for people: "NVML library not found: is the NVIDIA driver installed?"."""
    driver_version: str | None = None
    cuda_version: str | None = None
    nvml_version: str | None = None

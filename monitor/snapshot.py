"""The one currency of gpumon: an immutable picture of the machine and its training runs.

Collectors produce parts of it, advice reads it, every face (metrics, TUI, page, CLI, store, replay)
renders it. Numbers are numbers and the unit is in the key. What could not be read is ``None``:
absent is never 0. There is one serializer, `encode` / `decode`, at the bottom.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

SCHEMA_VERSION = 1

Severity = Literal["critical", "warning", "hint", "healthy"]
GpuState = Literal["ok", "lost", "hung", "error"]
RunState = Literal["running", "stalled", "ended", "failed", "killed"]


class Range(Struct, frozen=True):
    """What a reading did between two ticks when it is sampled faster than the tick."""

    min: float
    mean: float
    max: float
    samples: int


# ── GPU ──────────────────────────────────────────────────────────────────────────────────────────


class Pcie(Struct, frozen=True):
    """The PCIe link as it is now and as it could be; throughput is read on its own slow period."""

    generation: int | None = None
    generation_max: int | None = None
    width: int | None = None
    width_max: int | None = None
    transmit_bytes_per_second: float | None = None
    receive_bytes_per_second: float | None = None
    replays: int | None = None


class Nvlink(Struct, frozen=True):
    """NVLink links that are up, and the traffic over all of them."""

    links_active: int | None = None
    transmit_bytes_per_second: float | None = None
    receive_bytes_per_second: float | None = None
    bandwidth_bytes_per_second: float | None = None


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
    """XID code (as text, JSON keys are text) → how often it was seen since the daemon started."""
    xid_last: int | None = None
    xid_last_time: float | None = None


class Activity(Struct, frozen=True):
    """GPM (Hopper and newer): what the SMs really did, as ratios 0–1."""

    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None


class MigInstance(Struct, frozen=True):
    uuid: str
    name: str | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None


class GpuProcess(Struct, frozen=True):
    """A process as the driver sees it; join with `Snapshot.processes` by pid."""

    pid: int
    kind: Literal["compute", "graphics", "mps"] = "compute"
    memory_bytes: int | None = None
    sm_ratio: float | None = None
    mig_uuid: str | None = None


class Gpu(Struct, frozen=True):
    """One GPU. ``state`` other than "ok" means the readings below are the last known ones,
    ``age_seconds`` old, and no face may show them as current."""

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

    power_watts: float | None = None
    power_limit_watts: float | None = None
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

    pstate: int | None = None
    fan_ratio: float | None = None
    throttle: dict[str, bool] | None = None
    """Throttle reason → active now; None when the card does not tell. Keys: `THROTTLE_REASONS`."""

    pcie: Pcie = Pcie()
    nvlink: Nvlink = Nvlink()
    errors: Errors = Errors()
    activity: Activity = Activity()
    mig_enabled: bool | None = None
    mig: tuple[MigInstance, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    ranges: dict[str, Range] = {}
    """Field name above → its range since the last tick, for what is sampled faster than the tick."""


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
    """Where GPU readings come from, and when there are none: why."""

    kind: Literal["nvml", "simulated", "none"]
    ok: bool = True
    detail: str | None = None
    """One sentence for people: "NVML library not found: is the NVIDIA driver installed?"."""
    driver_version: str | None = None
    cuda_version: str | None = None
    nvml_version: str | None = None


# ── Host ─────────────────────────────────────────────────────────────────────────────────────────


class Pressure(Struct, frozen=True):
    """Linux PSI: share of the last 10 s in which some / all tasks waited, and the total counters."""

    some_ratio: float | None = None
    full_ratio: float | None = None
    some_seconds: float | None = None
    full_seconds: float | None = None


class Cpu(Struct, frozen=True):
    cores: int
    utilization_ratio: float | None = None
    per_core_ratio: tuple[float, ...] = ()
    user_ratio: float | None = None
    system_ratio: float | None = None
    iowait_ratio: float | None = None
    steal_ratio: float | None = None
    load_1m: float | None = None
    load_5m: float | None = None
    load_15m: float | None = None
    frequency_hertz: float | None = None
    pressure: Pressure = Pressure()


class Memory(Struct, frozen=True):
    total_bytes: int
    available_bytes: int
    used_bytes: int
    cached_bytes: int | None = None
    shared_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    swap_in_bytes_per_second: float | None = None
    swap_out_bytes_per_second: float | None = None
    pressure: Pressure = Pressure()


class Disk(Struct, frozen=True):
    name: str
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None
    busy_ratio: float | None = None
    rotational: bool | None = None


class Network(Struct, frozen=True):
    name: str
    receive_bytes_per_second: float | None = None
    transmit_bytes_per_second: float | None = None


class Cgroup(Struct, frozen=True):
    """Limits of the container the daemon (or a training process) runs in; None: no limit."""

    cpu_quota_cores: float | None = None
    cpu_throttled_ratio: float | None = None
    memory_limit_bytes: int | None = None
    memory_used_bytes: int | None = None


class Host(Struct, frozen=True):
    hostname: str
    kernel: str | None = None
    boot_time: float | None = None
    cpu: Cpu | None = None
    memory: Memory | None = None
    disks: tuple[Disk, ...] = ()
    networks: tuple[Network, ...] = ()
    io_pressure: Pressure = Pressure()
    cgroup: Cgroup = Cgroup()
    shm_free_bytes: int | None = None


class Process(Struct, frozen=True):
    """A training process, one of its children (a DataLoader worker), or a process on a GPU."""

    pid: int
    parent: int | None = None
    role: Literal["trainer", "worker", "gpu", "other"] = "other"
    name: str | None = None
    command: str | None = None
    user: str | None = None
    cpu_ratio: float | None = None
    """In cores: 1.0 is one core fully used."""
    rss_bytes: int | None = None
    threads: int | None = None
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None
    io_wait_ratio: float | None = None
    started: float | None = None
    container: str | None = None
    pod: str | None = None
    slurm_job: str | None = None
    cgroup: Cgroup = Cgroup()
    run: str | None = None
    rank: int | None = None
    container_name: str | None = None
    """Where the runtime's files are readable; ``container`` is its id."""


# ── Training runs ────────────────────────────────────────────────────────────────────────────────


class Times(Struct, frozen=True):
    """A distribution of seconds over a window of steps."""

    count: int = 0
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    min: float | None = None
    max: float | None = None
    stddev: float | None = None


class Phase(Struct, frozen=True):
    """Where step time goes. Shares are of the steady window, begin to begin, and sum to 1 over all
    phases of a rank (the rest is the phase named ``other``)."""

    name: str
    share: float
    mean_seconds: float
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    total_seconds: float = 0.0
    """Whole-run counter, warm-up included."""


class Stall(Struct, frozen=True):
    """Steps far longer than the usual one, grouped by what they were doing."""

    kind: str
    """validate, checkpoint, log, recompile, gc, epoch_start (the loader beginning anew), data, …: a known
    cause, or the phase that grew."""
    count: int
    total_seconds: float
    share: float
    """Of the whole steady wall time."""
    every_steps: float | None = None
    """Typical distance in steps when it is periodic."""
    mean_seconds: float | None = None
    last_step: int | None = None


class Device(Struct, frozen=True):
    """Device-side timing from pooled events; absent on CPU-only runs."""

    busy_ratio: float | None = None
    starved_ratio: float | None = None
    queue_depth: float | None = None
    measured_steps: int = 0
    skipped_steps: int = 0
    busy_seconds: float | None = None
    """Whole-run counter over the measured steps, warm-up included; so is the next."""
    starved_seconds: float | None = None


class LoaderTimes(Struct, frozen=True):
    """Inside the loader, from sampled batches: seconds a batch unless said otherwise."""

    batches: int = 0
    sampler_seconds: float | None = None
    fetch_seconds: float | None = None
    """All `__getitem__` (or `__getitems__`) calls of a batch."""
    getitem_seconds: float | None = None
    """One `__getitem__` call."""
    collate_seconds: float | None = None
    wait_seconds: float | None = None
    """The main process waiting for a worker."""
    pin_seconds: float | None = None
    worker_busy_ratio: float | None = None
    """Share of worker time spent working rather than waiting for room in the queue."""
    samples_per_batch: float | None = None


class Window(Struct, frozen=True):
    """One stretch of a run's timeline. At most 64 windows cover the run; their width doubles."""

    start: float
    """Wall time, seconds since the epoch."""
    seconds: float
    first_step: int
    steps: int
    steps_seconds: float = 0.0
    """Time of those steps (warm-up is not among them): rate = steps / steps_seconds."""
    step_p50: float | None = None
    step_p95: float | None = None
    step_max: float | None = None
    samples_per_second: float | None = None
    phases: dict[str, float] = {}
    """Phase name → share of this window's time."""
    starved_ratio: float | None = None
    loss: float | None = None
    rss_bytes: int | None = None
    device_memory_bytes: int | None = None
    gpu_utilization_ratio: float | None = None
    sm_clock_hertz: float | None = None
    stalls: tuple[str, ...] = ()


class Exemplar(Struct, frozen=True):
    """One real step that stands for a bucket of the step-time histogram."""

    step: int
    seconds: float
    time: float
    """Wall time of the step's end."""


class Rank(Struct, frozen=True):
    """One rank: one ring, one process."""

    rank: int
    state: RunState
    pid: int
    local_rank: int | None = None
    hostname: str | None = None
    gpu_uuid: str | None = None
    device: str | None = None
    """"cpu", "cuda:0", …: where the model's parameters are; None when not known."""

    steps: int = 0
    lost: int = 0
    """Records the daemon could not read before the writer came round: steps = read + lost."""
    samples: int = 0
    tokens: int = 0
    epoch: int | None = None
    warmup_steps: int = 0

    live_phase: str | None = None
    live_seconds: float | None = None
    last_step_time: float | None = None
    """Wall time of the newest committed step."""

    step: Times = Times()
    """Rolling window of steady steps (no warm-up, no stalls)."""
    whole: Times = Times()
    """The same over the whole run."""
    phases: tuple[Phase, ...] = ()
    iterations_per_second: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    device_times: Device = Device()
    loader: LoaderTimes = LoaderTimes()
    stalls: tuple[Stall, ...] = ()
    loss: float | None = None
    scalars: dict[str, float] = {}
    """Custom scalars of the user, and probes with a dotted prefix: ``cuda.allocated_bytes``,
    ``cuda.alloc_retries``, ``dynamo.recompiles``, ``dynamo.graph_breaks``, ``gc.seconds``, …"""
    overhead_ratio: float | None = None
    """What gpumon itself cost inside the loop, measured in place."""
    dropped: int = 0
    """What the SDK had to drop (no free event, full ring file)."""
    histogram: tuple[int, ...] = ()
    """Cumulative-free bucket counts of step seconds, for `STEP_BUCKETS` plus one overflow."""
    exemplars: tuple[Exemplar | None, ...] = ()
    """The newest step of each bucket of `histogram`."""


STEP_BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip


class Run(Struct, frozen=True):
    """One training run: all ranks of one launch."""

    id: str
    name: str
    state: RunState
    started: float
    ranks: tuple[Rank, ...]
    ended: float | None = None
    world_size: int = 1
    first_step_time: float | None = None
    """Wall time of the first step's begin: what lies before is set-up."""
    command: str | None = None
    script: str | None = None
    user: str | None = None
    hostname: str | None = None
    container: str | None = None
    pod: str | None = None
    slurm_job: str | None = None
    git_commit: str | None = None
    sdk_version: str | None = None
    way: str | None = None
    """How the run came in: "api", "auto", "seed", or a framework's name."""
    config: dict[str, Any] = {}
    """The configuration probe of rank 0 (see docs/probe.md for its keys)."""

    steps: int = 0
    lost: int = 0
    batch_size: int | None = None
    iterations_per_second: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    step: Times = Times()
    phases: tuple[Phase, ...] = ()
    starved_ratio: float | None = None
    trend_ratio: float | None = None
    """Throughput now over the run's best sustained throughput: 0.26 for 2052 → 539."""
    stalls: tuple[Stall, ...] = ()
    timeline: tuple[Window, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    visible_gpu_uuids: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()


# ── Findings ─────────────────────────────────────────────────────────────────────────────────────


class Speedup(Struct, frozen=True):
    """Predicted step-rate ratio after the remedy: 1.0 is no change."""

    low: float
    likely: float
    high: float
    why: str = ""


class Remedy(Struct, frozen=True):
    summary: str
    change: str = ""
    """A code change as a small diff (``-``/``+`` lines) or a command, with this run's own values."""


class Finding(Struct, frozen=True):
    id: str
    """The rule's stable id, e.g. ``input.no_workers``."""
    severity: Severity
    title: str
    run: str | None = None
    rank: int | None = None
    gpu: str | None = None
    evidence: dict[str, Any] = {}
    remedy: Remedy = Remedy("")
    speedup: Speedup | None = None
    since: float | None = None
    """Wall time when it was first seen."""
    why: str = ""
    """Why it matters, in a sentence or two."""


# ── Self ─────────────────────────────────────────────────────────────────────────────────────────


class Collector(Struct, frozen=True):
    """How one collector did. "No data" is not a failure; one failure never stops the rest."""

    name: str
    ok: bool
    seconds: float
    last_success: float | None = None
    failures: int = 0
    error: str | None = None


class Snapshot(Struct, frozen=True):
    seq: int
    time: float
    """Wall time, seconds since the epoch; for people."""
    monotonic: float
    """CLOCK_MONOTONIC seconds; for arithmetic."""
    interval_seconds: float
    source: Source
    host: Host
    schema: int = SCHEMA_VERSION
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Process, ...] = ()
    runs: tuple[Run, ...] = ()
    findings: tuple[Finding, ...] = ()
    collectors: tuple[Collector, ...] = ()
    dropped: dict[str, int] = {}
    """What was left out because of a cap (processes, runs, rings, …) → how many."""
    version: str | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Snapshot)


def encode(value: Any) -> bytes:
    """Any part of a snapshot as JSON."""
    return _encoder.encode(value)


def decode(data: bytes | str) -> Snapshot:
    """A snapshot from JSON. Raises `SchemaError` with one clear sentence."""
    try:
        snapshot = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise SchemaError(f"this is not a gpumon snapshot: {error}") from error
    if snapshot.schema != SCHEMA_VERSION:
        raise SchemaError(
            f"snapshot schema {snapshot.schema} does not fit this gpumon (schema {SCHEMA_VERSION}): "
            "use the same version on both sides"
        )
    return snapshot


class SchemaError(ValueError):
    """The data is not a snapshot this version understands."""

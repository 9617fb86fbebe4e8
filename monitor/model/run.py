"""A training run: its ranks, where their time went, and how that changed."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from monitor.model.criticality import Criticality
from monitor.model.finding import Speedup
from monitor.model.nodes import Node, Waste
from monitor.model.verdict import Verdict

RunState = Literal["running", "stalled", "ended", "failed", "killed"]
RunCondition = Literal["running", "warning", "critical", "starved", "stalled", "ended", "failed", "killed"]
"""The state or, while it runs, the worst finding about it: see `monitor.model.facts`."""
WORST_FIRST: tuple[RunCondition, ...] = (
    "stalled", "starved", "critical", "failed", "killed", "warning", "running", "ended",
)  # fmt: skip
"""The order in which runs deserve attention."""
Trend = Literal["steady", "falling", "collapsed"]


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
    """Steps far longer than usual, grouped by what they were doing."""

    kind: str
    """validate, checkpoint, log, recompile, gc, epoch_start (the loader starting over), data, …: a known
    cause, or the phase that grew."""
    count: int
    total_seconds: float
    share: float
    """Of the whole steady wall time."""
    every_steps: float | None = None
    """Typical distance in steps, if it is periodic."""
    mean_seconds: float | None = None
    last_step: int | None = None


Bound = Literal["device", "host", "data", "sync", "unknown"]
"""What a step spends its time on: the device's own work, the host launching it, waiting for data, or the host
waiting for the device and therefore launching late."""


class Device(Struct, frozen=True):
    """Device-side timing, from events and the kernels of a sampling window; absent on CPU-only runs."""

    busy_ratio: float | None = None
    starved_ratio: float | None = None
    """Share of device time without work, including gaps inside the passes where they are known."""
    bound: Bound = "unknown"
    lag_seconds: float | None = None
    """How far the device is behind the host, averaged over the marks of a step."""
    time: dict[str, float] = {}
    """Device seconds per step from one mark to the next, by phase: work and gaps together."""
    idle: dict[str, float] = {}
    """Device seconds per step without work, by phase; phases where that is unknown are missing."""
    queue_empty: dict[str, float] = {}
    """How often (0 to 1) the device had nothing in its queue at the end of a phase."""
    sync_idle_seconds: float | None = None
    """Idle because the host had waited for the device and so launched late. This and the fields below, up to
    the counters, come from a window of a few steps; seconds and counts are per step."""
    copy_idle_seconds: float | None = None
    """Idle while a copy to the device ran."""
    copy_seconds: float | None = None
    pageable_copy_seconds: float | None = None
    kernels: float | None = None
    syncs: float | None = None
    wait_seconds: float | None = None
    """The host waiting for the device."""
    exchange_seconds: float | None = None
    """Collective kernels while no other kernel runs."""
    measured_steps: int = 0
    skipped_steps: int = 0
    """Steps that could not be timed: no free event, or a graph was being captured."""
    busy_seconds: float | None = None
    """Whole-run counter over the measured steps, like the next field."""
    starved_seconds: float | None = None


class OtherDevice(Struct, frozen=True):
    """A further device of a process: one that has parameters, or memory of it."""

    name: str
    idle_ratio: float | None = None
    """Share of its time without work; None: unknown."""
    kernels: float | None = None
    """Per step, in a window; 0: it only holds memory; None: unknown."""


class LoaderTimes(Struct, frozen=True):
    """Inside the loader, from sampled batches: seconds per batch unless stated otherwise."""

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
    """One section of a run's timeline. At most 64 windows cover the run; their width doubles as needed."""

    start: float
    """Wall time, seconds since the epoch."""
    seconds: float
    first_step: int
    steps: int
    steps_seconds: float = 0.0
    """Duration of those steps (excluding warm-up): rate = steps / steps_seconds."""
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
    """One real step as the example for a bucket of the step-time histogram."""

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
    """"cpu", "cuda:0", …: where the model's parameters are; None if unknown."""

    steps: int = 0
    lost: int = 0
    """Records overwritten by the writer before the daemon could read them: steps = read + lost."""
    samples: int = 0
    tokens: int = 0
    epoch: int | None = None
    warmup_steps: int = 0

    live_phase: str | None = None
    live_seconds: float | None = None
    last_step_time: float | None = None
    """Wall time of the latest committed step."""

    step: Times = Times()
    """Rolling window of steady steps (no warm-up, no stalls)."""
    whole: Times = Times()
    """The same over the whole run."""
    phases: tuple[Phase, ...] = ()
    iterations_per_second: float | None = None
    micro_batches: float | None = None
    """Micro-batches per step, if gradients are accumulated over several; None: one."""
    micro_batches_per_second: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    device_times: Device = Device()
    """Of `device`. Others that the process uses are timed by themselves."""
    other_devices: tuple[OtherDevice, ...] = ()
    loader: LoaderTimes = LoaderTimes()
    stalls: tuple[Stall, ...] = ()
    loss: float | None = None
    scalars: dict[str, float] = {}
    """The user's custom scalars, and probes with a dotted prefix: ``cuda.allocated_bytes``,
    ``cuda.alloc_retries``, ``dynamo.recompiles``, ``dynamo.graph_breaks``, ``gc.seconds``, …"""
    overhead_ratio: float | None = None
    """What gpumon itself cost inside the loop, as measured there."""
    dropped: int = 0
    """What the SDK had to drop (no free event, full ring file)."""
    missing_records: int = 0
    """Lost and dropped together. Computed by `monitor.model.row_facts`, like the next field."""
    slowest_ratio: float | None = None
    """Its median step relative to the run's slowest rank: 1.0 is the slowest."""
    histogram: tuple[int, ...] = ()
    """Non-cumulative bucket counts of step seconds, for `STEP_BUCKETS` plus one overflow."""
    exemplars: tuple[Exemplar | None, ...] = ()
    """The latest step in each bucket of `histogram`."""
    live: bool = False
    """Its process is still running. Computed by `monitor.model.facts`, like the next field."""
    total_seconds: float = 0.0
    """Whole-run counter over all phases."""


STEP_BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip


class Stuck(Struct, frozen=True):
    """The rank that has been in its current phase the longest, and for how long."""

    rank: int
    phase: str
    seconds: float


class ProcessGroup(Struct, frozen=True):
    """The processes of one rank in one role, summed; a figure none of them reports is None."""

    role: str
    rank: int | None = None
    processes: int = 0
    cpu_ratio: float | None = None
    """In cores: 1.0 is one core fully used."""
    rss_bytes: int | None = None
    threads: int | None = None
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None


class Run(Struct, frozen=True):
    """One training run: all ranks of one launch."""

    id: str
    """Unique on this machine: no other user can have a run with the same id, whatever their rings claim."""
    name: str
    state: RunState
    started: float
    ranks: tuple[Rank, ...]
    ended: float | None = None
    world_size: int = 1
    first_step_time: float | None = None
    """Wall time at which the first step began: everything before is set-up."""
    command: str | None = None
    script: str | None = None
    user: str | None = None
    """Owner of the ring files, by name if the machine knows one; `owner_uid` is the same by number."""
    owner_uid: int | None = None
    claimed_id: str | None = None
    """The id as the rings give it (`GPUMON_RUN_ID`): other users may use the same one."""
    hostname: str | None = None
    container: str | None = None
    pod: str | None = None
    namespace: str | None = None
    """Of the pod."""
    slurm_job: str | None = None
    git_commit: str | None = None
    sdk_version: str | None = None
    way: str | None = None
    """How the run was attached: "api", "auto", "seed", or a framework's name."""
    framework: str | None = None
    """Whose loop trains: "lightning", "transformers", …; None: the script's own."""
    error: str | None = None
    """Type of the exception that ended it: "ValueError", "OutOfMemoryError"; None if unknown."""
    interrupted: bool = False
    """Somebody ended it with Ctrl-C or a termination request: its state is "ended", not a failure."""
    config: dict[str, Any] = {}
    """The configuration probe of rank 0 (see docs/probe.md for its keys)."""

    steps: int = 0
    lost: int = 0
    batch_size: int | None = None
    iterations_per_second: float | None = None
    micro_batches: float | None = None
    """Micro-batches per step, if gradients are accumulated over several; None: one."""
    micro_batches_per_second: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    step: Times = Times()
    phases: tuple[Phase, ...] = ()
    starved_ratio: float | None = None
    trend_ratio: float | None = None
    """Current throughput relative to the run's best sustained throughput: 0.26 for 2052 → 539."""
    stalls: tuple[Stall, ...] = ()
    criticality: tuple[Criticality, ...] = ()
    """Of a run with `--probe`: how critical each place of the loop is, in its first rank."""
    timeline: tuple[Window, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    visible_gpu_uuids: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    nodes: tuple[Node, ...] = ()
    """Its machines, of a run that was put together from several (`monitor.fleet`); so are the next two."""
    missing_ranks: tuple[int, ...] = ()
    """Ranks of a live run that no machine reports now."""
    waste: Waste | None = None

    combined: Speedup | None = None
    """What all remedies would give together. Computed by the advice engine, like the verdict."""
    verdict: Verdict | None = None

    live: bool = False
    """Still going. Computed by `monitor.model.facts`, like the fields below."""
    superseded: bool = False
    """Over, and the same user has started a run of the same name since."""
    condition: RunCondition = "running"
    starving: bool = False
    """The device waits for work for a large part of the step, or a rule concludes that it must."""
    trend: Trend | None = None
    current: Stuck | None = None
    """What the slowest rank is doing right now; None if no rank is live or reports it."""
    silent_windows: int = 0
    """Windows without a step since it hung, each as wide as the newest in `timeline`."""
    setup_seconds: float | None = None
    """From the start to the first step; None before the first step."""
    elapsed_seconds: float = 0.0
    """From the start to the end, or to now."""
    training_seconds: float | None = None
    """From the first step to the end, or to now; None before the first step."""
    mean_step_seconds: float | None = None
    """Mean step, begin to begin: the sum of the means of its phases."""
    on_gpu_uuids: tuple[str, ...] = ()
    """GPUs it computes on now: those it names, and those on which the driver lists its processes."""
    process_groups: tuple[ProcessGroup, ...] = ()

    @property
    def other_devices(self) -> tuple[OtherDevice, ...]:
        """Devices that work for the first rank, or may, besides the one its figures are of."""
        lead = self.ranks[0] if self.ranks else None
        return tuple(one for one in lead.other_devices if one.kernels != 0) if lead else ()

    @property
    def host_kind(self) -> str | None:
        """The kind of machine it ran on: its cores, CPU and device. None if unknown: such a run says nothing
        about another."""
        model, cores = self.config.get("cpu_model"), self.config.get("cpu_affinity")
        if not isinstance(model, str) or not isinstance(cores, int):
            return None
        return f"{cores} × {model}, {self.config.get('gpu_name') or 'no GPU'}"

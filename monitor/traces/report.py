"""The analysis of one trace, in numbers. Seconds refer to the window; absent is None."""

from __future__ import annotations

from msgspec import Struct

from monitor.traces.trace import Card, WorkKind


class Window(Struct, frozen=True):
    """The part of the trace the figures cover: from its first to its last work on a device."""

    seconds: float
    work: int
    """Number of kernels, copies and fills in it."""
    left_out: int = 0
    """Work in the trace but outside the window: in the last step, or launched before the first."""


class Steps(Struct, frozen=True):
    """The `ProfilerStep#` annotations, in host time."""

    first: int
    last: int
    count: int
    mean_seconds: float
    min_seconds: float
    max_seconds: float
    in_window: int
    """How many of them the window contains; the last one is excluded, since the profiler stops in it."""


class Temporal(Struct, frozen=True):
    """A device's time: computing, busy with something else (copies, fills, collectives), or idle."""

    span_seconds: float
    busy_seconds: float
    compute_seconds: float
    non_compute_seconds: float
    idle_seconds: float
    compute_ratio: float
    non_compute_ratio: float
    idle_ratio: float

    def share_of_span(self, part_seconds: float) -> float:
        return part_seconds / self.span_seconds

    def share_of_idle(self, part_seconds: float) -> float:
        return part_seconds / self.idle_seconds


class IdleByCategory(Struct, frozen=True):
    """Idle time in the categories of Holistic Trace Analysis."""

    host_wait_seconds: float
    """The next work was launched after the previous had ended: the host was late."""
    kernel_wait_seconds: float
    """It was queued, and began within the normal delay between two kernels."""
    other_seconds: float
    """It was queued but began later: an event of another stream, or its launch is unknown."""


class IdleByCause(Struct, frozen=True):
    """A device's idle time by what the host was doing; the parts add up to the total."""

    data_seconds: float
    """The loop waited for its DataLoader."""
    copy_seconds: float
    """The host was inside a blocking copy call (pageable memory)."""
    sync_seconds: float
    """The queue ran dry during a synchronisation; never more than the host waited in it."""
    launch_seconds: float
    """The host was launching: operators, runtime calls and the Python between them."""
    outside_seconds: float
    """The host was in no operator or call for a while: user code, sleep, or the process did not run."""
    kernel_wait_seconds: float
    other_seconds: float


class Savings(Struct, frozen=True):
    """How much shorter the window would be, at most, if the host did not wait there: from a replay. More than
    the cause's idle time, since an earlier host closes later gaps too. These cannot be added up."""

    data_seconds: float
    copy_seconds: float
    sync_seconds: float


class Queue(Struct, frozen=True):
    """Work launched but not yet begun."""

    mean: float
    """Over its changes, as in Holistic Trace Analysis."""
    median: float
    max: int
    time_mean: float
    """Over time: the expected length at a random moment."""
    empty_ratio: float
    """Share of the time with nothing in the queue."""
    over_time: tuple[float, ...] = ()
    """The mean in each of several equal parts of the window."""


class Stream(Struct, frozen=True):
    stream: int
    work: int
    busy_seconds: float
    idle: IdleByCategory
    queue: Queue | None = None
    """None if the trace contains no launch of its work."""


class Communication(Struct, frozen=True):
    seconds: float
    overlapped_seconds: float
    """While the device was also computing."""
    exposed_seconds: float
    overlap_ratio: float
    exposed_ratio: float
    """Of the span."""


class Launches(Struct, frozen=True):
    """How well the host keeps up with the device."""

    count: int
    kernel_median_seconds: float | None
    delay_median_seconds: float
    """From the call to the beginning of the work."""
    period_median_seconds: float | None
    """From one launch to the next."""
    late_ratio: float
    """Share of launches that came when the stream had run out of work."""


class Device(Struct, frozen=True):
    device: int
    name: str | None
    temporal: Temporal
    idle: IdleByCategory
    causes: IdleByCause
    savings: Savings
    communication: Communication | None
    queue: Queue | None
    launches: Launches | None
    launch_bound: bool | None
    """None if the trace does not show the launches."""
    streams: tuple[Stream, ...]


class Sync(Struct, frozen=True):
    """A place where the host waits for the device."""

    call: str
    operator: str | None
    """The outermost operator around it, such as aten::item."""
    where: str | None
    """The innermost Python function outside torch and the standard library, else the enclosing annotation."""
    count: int
    wait_seconds: float
    idle_after_seconds: float
    """What it costs: device idle time afterwards that would not exist without it."""


class Outside(Struct, frozen=True):
    """A place outside any operator where the host was while the device idled."""

    where: str | None
    """As for a sync."""
    count: int
    idle_seconds: float


class Copies(Struct, frozen=True):
    direction: str
    """HtoD, DtoH, DtoD, PtoP …"""
    host_memory: str | None
    """pageable or pinned; None if there is no host side or the trace does not say."""
    count: int
    seconds: float
    bytes: int | None
    bytes_per_second: float | None


class Kernel(Struct, frozen=True):
    name: str
    kind: WorkKind
    count: int
    seconds: float
    mean_seconds: float
    share: float
    """Of the summed time of all kernels."""
    tensor_cores: bool | None


class TensorCores(Struct, frozen=True):
    """Matrix kernels, classified by name."""

    tensor_seconds: float
    plain_seconds: float
    unknown_seconds: float
    ratio: float | None
    """Tensor-core share of the classified time; None if nothing could be classified."""


class Collective(Struct, frozen=True):
    name: str
    seconds: float
    exposed_seconds: float
    """Without concurrent computation."""


class LateRank(Struct, frozen=True):
    """The rank the others wait for. A collective ends for all ranks at once, so the rank with the shortest
    one arrived last; this needs no common clock."""

    rank: int
    collectives: int
    last_in: int
    """In how many of them it arrived last."""
    wait_seconds: float
    """Time lost by the rank that waits least for it, not hidden behind computation: the most to be gained."""
    wait_ratio: float
    """Of that rank's span."""


class TraceReport(Struct, frozen=True):
    source: str
    rank: int
    rank_known: bool
    """If not, the rank is the file's position in the list."""
    world_size: int | None
    events: int
    card: Card | None
    window: Window
    steps: Steps | None
    devices: tuple[Device, ...]
    """The one with the most work first."""
    syncs: tuple[Sync, ...]
    outside: tuple[Outside, ...]
    copies: tuple[Copies, ...]
    kernels: tuple[Kernel, ...]
    kernel_names: int
    """How many different kernels there are; `kernels` lists the heaviest."""
    tensor_cores: TensorCores | None
    collectives: tuple[Collective, ...]
    host_recorded: bool
    """Whether the trace has operators or annotations; without them, causes are coarser."""
    python_recorded: bool
    """Whether it has Python functions or stacks."""

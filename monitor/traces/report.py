"""What the analysis of one trace says, in numbers. Seconds are seconds of the window; absent is None."""

from __future__ import annotations

from msgspec import Struct

from monitor.traces.trace import Card, WorkKind


class Window(Struct, frozen=True):
    """The part of the trace the figures are about: from its first to its last work on a device."""

    seconds: float
    work: int
    """Kernels, copies and fills in it."""
    left_out: int = 0
    """Work of the trace that is not in it: of the last step, or launched before the first."""


class Steps(Struct, frozen=True):
    """The `ProfilerStep#` annotations, host time."""

    first: int
    last: int
    count: int
    mean_seconds: float
    min_seconds: float
    max_seconds: float
    in_window: int
    """How many of them the window has; the last one is left out, as it holds the profiler's own end."""


class Temporal(Struct, frozen=True):
    """A device's time: computing, busy with something else (copies, fills, collectives), idle."""

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
    """The next work was launched after the last had ended: the host was late."""
    kernel_wait_seconds: float
    """It was in the queue, and began within the delay that is normal between two kernels."""
    other_seconds: float
    """It was in the queue and began later: an event of another stream, or its launch is not known."""


class IdleByCause(Struct, frozen=True):
    """A device's idle time by what the host did meanwhile; the parts add up to the idle time."""

    data_seconds: float
    """The loop waited for its DataLoader."""
    copy_seconds: float
    """The host was inside a copy call that blocks (pageable memory)."""
    sync_seconds: float
    """The queue had run dry in a synchronisation; never more than the host waited in it."""
    launch_seconds: float
    """The host was launching: operators, runtime calls and the Python between them."""
    outside_seconds: float
    """The host was in no operator and no call for a while: own code, sleep, or the process did not run."""
    kernel_wait_seconds: float
    other_seconds: float


class Savings(Struct, frozen=True):
    """By how much the window would be shorter, at most, if the host did not wait there: from a replay. More
    than the idle time of the cause, as a host that is earlier closes later gaps too. Not to be added up."""

    data_seconds: float
    copy_seconds: float
    sync_seconds: float


class Queue(Struct, frozen=True):
    """Work launched but not begun."""

    mean: float
    """Over its changes, as Holistic Trace Analysis counts."""
    median: float
    max: int
    time_mean: float
    """Over time: what one finds when looking at a random moment."""
    empty_ratio: float
    """Share of the time with nothing in the queue."""
    over_time: tuple[float, ...] = ()
    """The mean in equal parts of the window."""


class Stream(Struct, frozen=True):
    stream: int
    work: int
    busy_seconds: float
    idle: IdleByCategory
    queue: Queue | None = None
    """None when no launch of its work is in the trace."""


class Communication(Struct, frozen=True):
    seconds: float
    overlapped_seconds: float
    """While the device computed as well."""
    exposed_seconds: float
    overlap_ratio: float
    exposed_ratio: float
    """Of the span."""


class Launches(Struct, frozen=True):
    """How the host keeps up with the device."""

    count: int
    kernel_median_seconds: float | None
    delay_median_seconds: float
    """From the call to the begin of the work."""
    period_median_seconds: float | None
    """From one launch to the next."""
    late_ratio: float
    """Share of the launches that came when the stream had nothing left to do."""


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
    """None when the trace does not show the launches."""
    streams: tuple[Stream, ...]


class Sync(Struct, frozen=True):
    """A place where the host waits for the device."""

    call: str
    operator: str | None
    """The outermost operator around it, such as aten::item."""
    where: str | None
    """The innermost Python function outside torch and the standard library, else the annotation around it."""
    count: int
    wait_seconds: float
    idle_after_seconds: float
    """What it costs: idle time of the device that follows and would not be there without it."""


class Outside(Struct, frozen=True):
    """A place outside all operators in which the host was while the device idled."""

    where: str | None
    """As of a sync."""
    count: int
    idle_seconds: float


class Copies(Struct, frozen=True):
    direction: str
    """HtoD, DtoH, DtoD, PtoP …"""
    host_memory: str | None
    """pageable or pinned; None where there is no host side or the trace does not say."""
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
    """Of the time of all kernels, added up."""
    tensor_cores: bool | None


class TensorCores(Struct, frozen=True):
    """Matrix kernels by what their names say."""

    tensor_seconds: float
    plain_seconds: float
    unknown_seconds: float
    ratio: float | None
    """Tensor-core time of the time that could be told; None when none could."""


class Collective(Struct, frozen=True):
    name: str
    seconds: float
    exposed_seconds: float
    """Without computing meanwhile."""


class LateRank(Struct, frozen=True):
    """The rank the others wait for. A collective ends for all at once, so the rank with the shortest one
    came last; this needs no common clock."""

    rank: int
    collectives: int
    last_in: int
    """In how many of them it was the last to come."""
    wait_seconds: float
    """What the rank that waits least for it loses, not hidden behind computing: all that could be gained."""
    wait_ratio: float
    """Of that rank's span."""


class TraceReport(Struct, frozen=True):
    source: str
    rank: int
    rank_known: bool
    """Else the rank is the file's place in the list."""
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
    """How many different kernels there are; `kernels` has the heaviest."""
    tensor_cores: TensorCores | None
    collectives: tuple[Collective, ...]
    host_recorded: bool
    """Whether the trace has operators or annotations; without them causes are coarser."""
    python_recorded: bool
    """Whether it has Python functions or stacks."""

"""Rank families: counters over the whole run, so that `rate()` gives speeds and shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from monitor.model.run import STEP_BUCKETS, Rank
from monitor.web.families.base import Distribution, Family, Kind, Sample, Scene

LABELS = ("run", "rank")
EACH = "1 per rank"
RINGS = "ring of the rank"


def _of(
    name: str, kind: Kind, help: str, value: Callable[[Rank], float | None], source: str = RINGS
) -> Family:
    def read(scene: Scene) -> Iterable[Sample]:
        return [(labels, value(rank)) for labels, rank in scene.ranks]

    return Family(f"gpumon_rank_{name}", kind, help, LABELS, read, source, EACH)


def _info(scene: Scene) -> Iterable[Sample]:
    for labels, rank in scene.ranks:
        local = "" if rank.local_rank is None else str(rank.local_rank)
        uuid = rank.gpu_uuid or ""
        place = (rank.hostname or "", rank.device or "", uuid, scene.gpu_index.get(uuid, ""))
        yield (*labels, local, *place), 1.0


def _up(scene: Scene) -> Iterable[Sample]:
    return [(labels, float(rank.live)) for labels, rank in scene.ranks]


def _phase_seconds(scene: Scene) -> Iterable[Sample]:
    for labels, rank in scene.ranks:
        for phase in rank.phases:
            yield (*labels, phase.name), phase.total_seconds


def _device_phases(scene: Scene) -> Iterable[Sample]:
    for labels, rank in scene.ranks:
        for name, seconds in rank.device_times.time.items():
            yield (*labels, name), seconds


def _stalls(scene: Scene) -> Iterable[Sample]:
    for labels, rank in scene.ranks:
        for stall in rank.stalls:
            yield (*labels, stall.kind), stall.count


def _stall_seconds(scene: Scene) -> Iterable[Sample]:
    for labels, rank in scene.ranks:
        for stall in rank.stalls:
            yield (*labels, stall.kind), stall.total_seconds


def _live_phase(scene: Scene) -> Iterable[Sample]:
    for labels, rank in scene.ranks:
        if rank.live_phase is not None:
            yield (*labels, rank.live_phase), rank.live_seconds


def _scalars(scene: Scene) -> Iterable[Sample]:
    """The user's own come first: a cap leaves out probes (their names have a dot) before them."""
    limit = scene.limits.scalars
    for labels, rank in scene.ranks:
        names = list(rank.scalars)
        if len(names) > limit:
            names = sorted(names, key=lambda name: "." in name)[:limit]
        for name in names:
            yield (*labels, name), rank.scalars[name]


def _step_seconds(scene: Scene) -> Iterable[Distribution]:
    for labels, rank in scene.ranks:
        if rank.histogram:
            exemplar_labels = (("run", labels[0]),)
            yield Distribution(labels, rank.histogram, rank.total_seconds, rank.exemplars, exemplar_labels)


def _scalar(name: str) -> Callable[[Rank], float | None]:
    return lambda rank: rank.scalars.get(name)


def _nothing(scene: Scene) -> Iterable[Sample]:
    return ()


FAMILIES = (
    Family("gpumon_rank_info", "info", "Where a rank runs; join by run and rank, or with a GPU by uuid.", (*LABELS, "local_rank", "hostname", "device", "uuid", "gpu"), _info, "ring meta", EACH),
    Family("gpumon_rank_up", "gauge", "1 while the rank's process lives.", LABELS, _up, "file lock of the ring", EACH),
    _of("steps_total", "counter", "Steps done.", lambda r: r.steps),
    _of("samples_total", "counter", "Samples trained on.", lambda r: r.samples),
    _of("tokens_total", "counter", "Tokens trained on.", lambda r: r.tokens or None),
    _of("lost_records_total", "counter", "Steps the daemon could not read before the ring came round.", lambda r: r.lost),
    _of("sdk_dropped_total", "counter", "Measurements the SDK had to leave out.", lambda r: r.dropped),
    Family("gpumon_rank_phase_seconds_total", "counter", "Time spent in a phase, warm-up included; rate() over phases gives shares.", (*LABELS, "phase"), _phase_seconds, RINGS, "1 per phase and rank, at most 17"),
    Family("gpumon_rank_step_seconds", "histogram", "Step time, begin to begin.", LABELS, _nothing, RINGS, f"{len(STEP_BUCKETS) + 3} per rank", _step_seconds, STEP_BUCKETS),
    _of("step_mean_seconds", "gauge", "Mean step time over the rolling window of steady steps.", lambda r: r.step.mean),
    _of("device_busy_seconds_total", "counter", "Device time with work, over measured steps.", lambda r: r.device_times.busy_seconds, "device events"),
    _of("starved_seconds_total", "counter", "Device time without work, over measured steps.", lambda r: r.device_times.starved_seconds, "device events"),
    _of("device_busy_ratio", "gauge", "Share of time the device had work from this rank.", lambda r: r.device_times.busy_ratio, "device events"),
    _of("starved_ratio", "gauge", "Share of time the device waited for this rank.", lambda r: r.device_times.starved_ratio, "device events"),
    _of("device_lag_seconds", "gauge", "How far the device is behind the CPU; near 0 its queue runs empty.", lambda r: r.device_times.lag_seconds, "device events"),
    Family("gpumon_rank_device_phase_seconds", "gauge", "Device time of a step by phase, work and gaps together.", (*LABELS, "phase"), _device_phases, "device events", "1 per phase and rank that a GPU times"),
    _of("exchange_seconds", "gauge", "Device time of a step in which kernels of collectives run alone: who comes late waits least.", lambda r: r.device_times.exchange_seconds, "kernels of a window"),
    Family("gpumon_rank_stalls_total", "counter", "Steps far longer than the usual one, by cause.", (*LABELS, "kind"), _stalls, RINGS, "1 per cause seen and rank"),
    Family("gpumon_rank_stall_seconds_total", "counter", "Time in such steps.", (*LABELS, "kind"), _stall_seconds, RINGS, "1 per cause seen and rank"),
    Family("gpumon_rank_live_phase_seconds", "gauge", "How long the phase that is open now has lasted.", (*LABELS, "phase"), _live_phase, "ring header", EACH),
    _of("last_step_timestamp_seconds", "gauge", "When the newest step was committed.", lambda r: r.last_step_time),
    _of("epoch", "gauge", "Epoch the rank is in.", lambda r: r.epoch),
    _of("loss", "gauge", "Loss of the newest step that had one.", lambda r: r.loss),
    _of("device_memory_allocated_bytes", "gauge", "Device memory held by tensors.", _scalar("cuda.allocated_bytes"), "torch allocator"),
    _of("device_memory_reserved_bytes", "gauge", "Device memory held by the allocator.", _scalar("cuda.reserved_bytes"), "torch allocator"),
    _of("overhead_ratio", "gauge", "Share of step time gpumon itself cost, measured in place.", lambda r: r.overhead_ratio, "SDK"),
    Family("gpumon_rank_scalar", "gauge", "Scalars the run records: the user's own, and probes with a dotted prefix.", (*LABELS, "scalar"), _scalars, "scalar table of the ring", "1 per scalar and rank, at most --max-scalars"),
)  # fmt: skip

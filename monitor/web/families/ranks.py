"""Rank families: counters over the whole run, so that `rate()` gives speeds and shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from monitor.model.run import STEP_BUCKETS, Phase, Stall
from monitor.web.families.base import Column, Distribution, Family, Kind, Sample, Scene

LABELS = ("run", "rank")
EACH = "1 per rank"
RINGS = "ring of the rank"


def _of(
    name: str,
    kind: Kind,
    help: str,
    path: str,
    source: str = RINGS,
    value: Callable[[Any], float | None] | None = None,
) -> Family:
    """A family with one value per rank: the attribute at `path`."""
    column = Column("ranks", path)
    read = column.one_each(value)
    return Family(f"gpumon_rank_{name}", kind, help, LABELS, read, source, EACH, column=column)


def _each(
    name: str,
    kind: Kind,
    help: str,
    label: str,
    path: str,
    values: Callable[[Any], Iterable[tuple[str, float | None]]],
    source: str,
    cost: str,
) -> Family:
    """A family with several values per rank, made of the attribute at `path`."""
    column = Column("ranks", path)
    read, labels = column.some_each(values), (*LABELS, label)
    return Family(f"gpumon_rank_{name}", kind, help, labels, read, source, cost, column=column)


def _info(scene: Scene) -> Iterable[Sample]:
    for labels, rank in scene.ranks:
        local = "" if rank.local_rank is None else str(rank.local_rank)
        uuid = rank.gpu_uuid or ""
        place = (rank.hostname or "", rank.device or "", uuid, scene.gpu_index.get(uuid, ""))
        yield (*labels, local, *place), 1.0


def _phase_seconds(phases: Iterable[Phase]) -> Iterable[tuple[str, float]]:
    return [(phase.name, phase.total_seconds) for phase in phases]


def _stalls(stalls: Iterable[Stall]) -> Iterable[tuple[str, float]]:
    return [(stall.kind, stall.count) for stall in stalls]


def _stall_seconds(stalls: Iterable[Stall]) -> Iterable[tuple[str, float]]:
    return [(stall.kind, stall.total_seconds) for stall in stalls]


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


def _scalar(name: str) -> Callable[[dict[str, float]], float | None]:
    return lambda scalars: scalars.get(name)


def _nothing(scene: Scene) -> Iterable[Sample]:
    return ()


FAMILIES = (
    Family("gpumon_rank_info", "info", "Where a rank runs; join by run and rank, or with a GPU by uuid.", (*LABELS, "local_rank", "hostname", "device", "uuid", "gpu"), _info, "ring meta", EACH),
    _of("up", "gauge", "1 while the rank's process lives.", "live", "file lock of the ring"),
    _of("steps_total", "counter", "Steps done.", "steps"),
    _of("samples_total", "counter", "Samples trained on.", "samples"),
    _of("tokens_total", "counter", "Tokens trained on.", "tokens", value=lambda count: count or None),
    _of("lost_records_total", "counter", "Steps the daemon could not read before the ring came round.", "lost"),
    _of("sdk_dropped_total", "counter", "Measurements the SDK had to leave out.", "dropped"),
    _each("phase_seconds_total", "counter", "Time spent in a phase, warm-up included; rate() over phases gives shares.", "phase", "phases", _phase_seconds, RINGS, "1 per phase and rank, at most 17"),
    Family("gpumon_rank_step_seconds", "histogram", "Step time, begin to begin.", LABELS, _nothing, RINGS, f"{len(STEP_BUCKETS) + 3} per rank", _step_seconds, STEP_BUCKETS),
    _of("step_mean_seconds", "gauge", "Mean step time over the rolling window of steady steps.", "step.mean"),
    _of("device_busy_seconds_total", "counter", "Device time with work, over measured steps.", "device_times.busy_seconds", "device events"),
    _of("starved_seconds_total", "counter", "Device time without work, over measured steps.", "device_times.starved_seconds", "device events"),
    _of("device_busy_ratio", "gauge", "Share of time the device had work from this rank.", "device_times.busy_ratio", "device events"),
    _of("starved_ratio", "gauge", "Share of time the device waited for this rank.", "device_times.starved_ratio", "device events"),
    _of("device_lag_seconds", "gauge", "How far the device is behind the CPU; near 0 its queue runs empty.", "device_times.lag_seconds", "device events"),
    _each("device_phase_seconds", "gauge", "Device time of a step by phase, work and gaps together.", "phase", "device_times.time", dict.items, "device events", "1 per phase and rank that a GPU times"),
    _of("exchange_seconds", "gauge", "Device time of a step in which kernels of collectives run alone: who comes late waits least.", "device_times.exchange_seconds", "kernels of a window"),
    _each("stalls_total", "counter", "Steps far longer than the usual one, by cause.", "kind", "stalls", _stalls, RINGS, "1 per cause seen and rank"),
    _each("stall_seconds_total", "counter", "Time in such steps.", "kind", "stalls", _stall_seconds, RINGS, "1 per cause seen and rank"),
    Family("gpumon_rank_live_phase_seconds", "gauge", "How long the phase that is open now has lasted.", (*LABELS, "phase"), _live_phase, "ring header", EACH),
    _of("last_step_timestamp_seconds", "gauge", "When the newest step was committed.", "last_step_time"),
    _of("epoch", "gauge", "Epoch the rank is in.", "epoch"),
    _of("loss", "gauge", "Loss of the newest step that had one.", "loss"),
    _of("device_memory_allocated_bytes", "gauge", "Device memory held by tensors.", "scalars", "torch allocator", _scalar("cuda.allocated_bytes")),
    _of("device_memory_reserved_bytes", "gauge", "Device memory held by the allocator.", "scalars", "torch allocator", _scalar("cuda.reserved_bytes")),
    _of("overhead_ratio", "gauge", "Share of step time gpumon itself cost, measured in place.", "overhead_ratio", "SDK"),
    Family("gpumon_rank_scalar", "gauge", "Scalars the run records: the user's own, and probes with a dotted prefix.", (*LABELS, "scalar"), _scalars, "scalar table of the ring", "1 per scalar and rank, at most --max-scalars"),
)  # fmt: skip

"""What a metric family is, and the scene it is read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from monitor.snapshot import Exemplar, Gpu, Rank, Run, Snapshot

Kind = Literal["gauge", "counter", "info", "histogram"]
Labels = tuple[str, ...]
Sample = tuple[Labels, float | None]
"""Label values and a value; None is absent and not written."""

UNITS = ("seconds", "bytes", "joules", "watts", "hertz", "celsius", "ratio", "cores")


class Distribution(NamedTuple):
    """One histogram: counts per bucket (not cumulative, the last is above every bound) and the sum."""

    labels: Labels
    counts: tuple[int, ...]
    sum: float
    exemplars: tuple[Exemplar | None, ...] = ()
    exemplar_labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family: its contract and where its samples come from."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Callable[[Scene], Iterable[Sample]]
    source: str
    """Where the figure comes from, for docs/metrics.md."""
    cost: str
    """How many series it makes."""
    distributions: Callable[[Scene], Iterable[Distribution]] | None = None
    bounds: tuple[float, ...] = ()

    @property
    def base(self) -> str:
        """The family's name in OpenMetrics: without the suffix its type implies."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.kind, "")
        return self.name.removesuffix(suffix)

    @property
    def unit(self) -> str | None:
        return next((unit for unit in UNITS if self.base.endswith(f"_{unit}")), None)


@dataclass(slots=True)
class Own:
    """What the daemon knows about itself; changed by the event loop only."""

    started: float = 0.0
    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    """(route, status code) → how many."""
    streams: int = 0
    missed_ticks: int = 0
    render_seconds: float | None = None
    cpu_seconds: float | None = None
    resident_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on what is open-ended; what they leave out is counted."""

    runs: int = 64
    ranks: int = 1024
    scalars: int = 32
    findings: int = 512


@dataclass(frozen=True, slots=True)
class Scene:
    """One snapshot with the caps applied: what all families of one rendering are read from."""

    snapshot: Snapshot
    own: Own
    limits: Limits
    gpus: tuple[tuple[Labels, Gpu], ...]
    """GPUs that answer, each with the labels of its series."""
    runs: tuple[Run, ...]
    ranks: tuple[tuple[Labels, Rank], ...]
    left_out: dict[str, int]
    gpu_index: dict[str, str]
    """GPU uuid → its index as text."""


ENDED_KEPT_SECONDS = 300.0
"""How long an ended run keeps its series: long enough for a last scrape, then they vanish."""


def make_scene(snapshot: Snapshot, own: Own, limits: Limits) -> Scene:
    """Apply the caps. Live runs come first, so that ended ones are left out before them."""
    present = [run for run in snapshot.runs if not _long_ended(run, snapshot.time)]
    present.sort(key=lambda run: (run.ended is not None, -run.started))
    runs = tuple(present[: limits.runs])
    ranks = [((run.id, str(rank.rank)), rank) for run in runs for rank in run.ranks]
    left_out = {
        "metric_runs": len(present) - len(runs),
        "metric_ranks": max(0, len(ranks) - limits.ranks),
        "metric_scalars": sum(max(0, len(rank.scalars) - limits.scalars) for _, rank in ranks),
        "metric_findings": max(0, len(snapshot.findings) - limits.findings),
    }
    index = {gpu.uuid: str(gpu.index) for gpu in snapshot.gpus}
    gpus = tuple(((gpu.uuid, index[gpu.uuid]), gpu) for gpu in snapshot.gpus if gpu.state == "ok")
    return Scene(snapshot, own, limits, gpus, runs, tuple(ranks[: limits.ranks]), left_out, index)


def _long_ended(run: Run, now: float) -> bool:
    return run.ended is not None and now - run.ended > ENDED_KEPT_SECONDS

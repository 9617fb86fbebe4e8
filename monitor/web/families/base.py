"""What a metric family is, and the scene it is read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any, Literal, NamedTuple

from monitor.model.fair_share import fair_share
from monitor.model.finding import Finding
from monitor.model.gpu import Gpu, Holder
from monitor.model.gpu_users import GpuUser, users_by_gpu
from monitor.model.run import Exemplar, Rank, Run
from monitor.model.snapshot import Snapshot

Kind = Literal["gauge", "counter", "info", "histogram"]
Labels = tuple[str, ...]
Sample = tuple[Labels, float | None]
"""Label values and a value; None is absent and not written."""

Read = Callable[["Scene"], Iterable[Sample]]

MAX_RING_ERRORS = 256
"""A choice: series of users and reasons."""
UNITS = ("seconds", "bytes", "joules", "watts", "hertz", "celsius", "ratio", "cores")


class Distribution(NamedTuple):
    """One histogram: counts per bucket (not cumulative, the last is above every bound) and the sum."""

    labels: Labels
    counts: tuple[int, ...]
    sum: float
    exemplars: tuple[Exemplar | None, ...] = ()
    exemplar_labels: tuple[tuple[str, str], ...] = ()


class Column(NamedTuple):
    """An attribute that a family reads of every GPU or rank, and nothing else: as long as it stays the same
    for all of them, so do the family's samples."""

    rows: Literal["gpus", "ranks"]
    path: str

    def one_each(self, value: Callable[[Any], float | None] | None = None) -> Read:
        """Reads one sample per row: the attribute, or what `value` makes of it."""
        get, rows = attrgetter(self.path), attrgetter(self.rows)
        if value is None:
            return lambda scene: [(labels, get(row)) for labels, row in rows(scene)]
        return lambda scene: [(labels, value(get(row))) for labels, row in rows(scene)]

    def some_each(self, values: Callable[[Any], Iterable[tuple[str, float | None]]]) -> Read:
        """Reads as many samples per row as `values` makes of the attribute, each with one more label."""
        get, rows = attrgetter(self.path), attrgetter(self.rows)
        return lambda scene: [
            ((*labels, key), value) for labels, row in rows(scene) for key, value in values(get(row))
        ]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family: its contract and where its samples come from."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Read
    source: str
    """Where the figure comes from, for docs/metrics.md."""
    cost: str
    """How many series it makes."""
    distributions: Callable[[Scene], Iterable[Distribution]] | None = None
    bounds: tuple[float, ...] = ()
    column: Column | None = None
    """None: the family reads more than one."""

    @property
    def base(self) -> str:
        """The family's name in OpenMetrics: without the suffix its type implies."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.kind, "")
        return self.name.removesuffix(suffix)

    @property
    def of_runs(self) -> bool:
        """Whether each of its series belongs to a run: without runs there are none."""
        return self.labels[:1] == ("run",)

    @property
    def unit(self) -> str | None:
        return next((unit for unit in UNITS if self.base.endswith(f"_{unit}")), None)


@dataclass(slots=True)
class Own:
    """What the daemon knows about itself; changed by the event loop only."""

    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    """(route, status code) → how many."""
    streams: Sized = ()
    missed_ticks: int = 0
    render_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on what is open-ended; what they leave out is counted."""

    runs: int = 64
    ranks: int = 1024
    scalars: int = 32
    findings: int = 512
    processes: int = 16
    """Of one GPU; the others are summed, not left out."""
    holders: int = 512
    per_link: bool = False
    """Whether every NVLink link is shown by itself."""


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
    users: tuple[tuple[Labels, GpuUser], ...]
    """Processes on the GPUs, each with the labels of its GPU."""
    holders: tuple[tuple[Labels, Holder], ...]
    gpu_index: dict[str, str]
    """GPU uuid → its index as text."""
    findings: tuple[Finding, ...]
    ring_errors: dict[tuple[str, str], int]
    """(user, reason) → how many."""


ENDED_KEPT_SECONDS = 300.0
"""How long an ended run keeps its series: long enough for a last scrape, then they vanish."""


def make_scene(snapshot: Snapshot, own: Own, limits: Limits) -> Scene:
    """Apply the caps: runs that ended are left out before live ones, those that ended first before all, and those
    of an owner with many before those of one with few."""
    present = [run for run in snapshot.runs if not _long_ended(run, snapshot.time)]
    present.sort(key=lambda run: (run.ended is not None, -(run.ended or run.started)))
    live = fair_share([run for run in present if run.ended is None], _owner, limits.runs)
    over = fair_share([run for run in present if run.ended is not None], _owner, limits.runs - len(live))
    runs = (*live, *over)
    ranks = [(run.owner_uid, ((run.id, str(rank.rank)), rank)) for run in runs for rank in run.ranks]
    owners = {run.id: run.owner_uid for run in snapshot.runs}
    findings = fair_share(snapshot.findings, lambda one: owners.get(one.run or ""), limits.findings)
    holders = [((gpu.uuid, str(gpu.index)), one) for gpu in snapshot.gpus for one in gpu.holders]
    left_out = {
        "metric_runs": len(present) - len(runs),
        "metric_ranks": max(0, len(ranks) - limits.ranks),
        "metric_scalars": sum(max(0, len(rank.scalars) - limits.scalars) for _, (_, rank) in ranks),
        "metric_findings": len(snapshot.findings) - len(findings),
        "metric_holders": max(0, len(holders) - limits.holders),
    }
    index = {gpu.uuid: str(gpu.index) for gpu in snapshot.gpus}
    gpus = tuple(((gpu.uuid, index[gpu.uuid]), gpu) for gpu in snapshot.gpus if gpu.state == "ok")
    users = users_by_gpu(snapshot, limits.processes)
    return Scene(
        snapshot,
        own,
        limits,
        gpus=gpus,
        runs=runs,
        ranks=tuple(rank for _, rank in fair_share(ranks, itemgetter(0), limits.ranks)),
        left_out=left_out,
        users=tuple((labels, user) for labels, gpu in gpus for user in users.get(gpu.uuid, ())),
        holders=tuple(holders[: limits.holders]),
        gpu_index=index,
        findings=findings,
        ring_errors=_ring_errors(snapshot),
    )


def _owner(run: Run) -> int | None:
    return run.owner_uid


def _ring_errors(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """The largest counts by user; the others only by reason."""
    ranked = sorted(snapshot.ring_trouble, key=lambda one: -one.count)
    found: Counter[tuple[str, str]] = Counter()
    for at, one in enumerate(ranked):
        found[one.user if at < MAX_RING_ERRORS else "others", one.reason] += one.count
    return dict(sorted(found.items()))


def _long_ended(run: Run, now: float) -> bool:
    return run.ended is not None and now - run.ended > ENDED_KEPT_SECONDS

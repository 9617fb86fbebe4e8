"""When a device was busy, with what, and how much communication was hidden behind computation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.traces.intervals import Intervals, intersection, length, union
from monitor.traces.report import Communication, Temporal
from monitor.traces.trace import NS, Work, WorkKind


def busy_time(work: Iterable[Work], kind: WorkKind | None = None) -> Intervals:
    """The time in which work (of this kind) ran; overlaps count once."""
    return union((one.begin, one.end) for one in work if kind is None or one.kind == kind)


def temporal(busy: Intervals, computing: Intervals) -> Temporal:
    span = busy[-1][1] - busy[0][0]
    worked, computed = length(busy), length(computing)
    return Temporal(
        span_seconds=span / NS,
        busy_seconds=worked / NS,
        compute_seconds=computed / NS,
        non_compute_seconds=(worked - computed) / NS,
        idle_seconds=(span - worked) / NS,
        compute_ratio=computed / span,
        non_compute_ratio=(worked - computed) / span,
        idle_ratio=(span - worked) / span,
    )


def communication(work: Sequence[Work], computing: Intervals, span: int) -> Communication | None:
    """None if there was no collective."""
    talking = busy_time(work, "communication")
    total = length(talking)
    if not total:
        return None
    hidden = length(intersection(talking, computing))
    return Communication(
        seconds=total / NS,
        overlapped_seconds=hidden / NS,
        exposed_seconds=(total - hidden) / NS,
        overlap_ratio=hidden / total,
        exposed_ratio=(total - hidden) / span,
    )

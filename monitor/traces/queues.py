"""The launch queue over time, and whether the host keeps it filled."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from monitor.traces.report import Launches, Queue
from monitor.traces.trace import NS, Work

PARTS = 60
"""Number of parts of the window in which the queue is shown: one terminal line."""
LAUNCH_IDLE_RATIO = 0.1
LATE_RATIO = 0.5
"""Launch-bound means: the device idles for at least this share because of launching, and at least this share
of launches finds the stream out of work."""
Change = tuple[int, int]
"""A moment, and the queue length from then on."""


def changes(work: Iterable[Work]) -> list[Change]:
    """The queue grows by one at each launch and shrinks by one when the work begins."""
    marks = []
    for one in work:
        if one.launch is not None:
            marks.append((one.launch.begin, 1))
            marks.append((one.begin, -1))
    marks.sort(key=lambda mark: (mark[0], -mark[1]))
    found, depth = [], 0
    for moment, change in marks:
        depth += change
        found.append((moment, depth))
    return found


def queue(work: Iterable[Work]) -> Queue | None:
    """None if no launch is known."""
    found = changes(work)
    if not found:
        return None
    depths = [depth for _, depth in found]
    stretches = [(now, then, depth) for (now, depth), (then, _) in pairwise(found)]
    span = found[-1][0] - found[0][0] or 1
    return Queue(
        mean=statistics.fmean(depths),
        median=statistics.median(depths),
        max=max(depths),
        time_mean=sum((then - now) * depth for now, then, depth in stretches) / span,
        empty_ratio=sum(then - now for now, then, depth in stretches if depth == 0) / span,
        over_time=_over_time(stretches, found[0][0], span),
    )


def _over_time(stretches: Sequence[tuple[int, int, int]], begin: int, span: int) -> tuple[float, ...]:
    """The mean depth in each of `PARTS` equal parts."""
    areas = [0.0] * PARTS
    width = span / PARTS
    for now, then, depth in stretches:
        if depth:
            _spread(areas, (now - begin) / width, (then - begin) / width, depth)
    return tuple(round(area, 3) for area in areas)


def _spread(areas: list[float], first: float, last: float, depth: int) -> None:
    """Add an interval, in units of parts, to the parts it touches."""
    at = int(first)
    while at < last and at < len(areas):
        areas[at] += depth * (min(last, at + 1) - max(first, at))
        at += 1


def launches(streams: Iterable[Sequence[Work]]) -> Launches | None:
    """Over all streams of a device; None if no launch is known."""
    delays, begins, lengths, late = [], [], [], 0
    for work in streams:
        ended = None
        for one in work:
            if one.launch is not None:
                delays.append(one.begin - one.launch.begin)
                begins.append(one.launch.begin)
                late += ended is None or one.launch.begin > ended
            if one.kind != "memory":
                lengths.append(one.end - one.begin)
            ended = one.end if ended is None else max(ended, one.end)
    if not delays:
        return None
    return Launches(
        count=len(delays),
        kernel_median_seconds=statistics.median(lengths) / NS if lengths else None,
        delay_median_seconds=statistics.median(delays) / NS,
        period_median_seconds=_median_period(begins),
        late_ratio=late / len(delays),
    )


def _median_period(begins: list[int]) -> float | None:
    ordered = sorted(set(begins))
    periods = [then - now for now, then in pairwise(ordered)]
    return statistics.median(periods) / NS if periods else None


def launch_bound(pace: Launches | None, idle_ratio: float) -> bool | None:
    """Whether kernels finish faster than the host launches the next; None if launches are unknown."""
    if pace is None or pace.kernel_median_seconds is None or pace.period_median_seconds is None:
        return None
    return (
        idle_ratio >= LAUNCH_IDLE_RATIO
        and pace.late_ratio >= LATE_RATIO
        and pace.kernel_median_seconds < pace.period_median_seconds
    )

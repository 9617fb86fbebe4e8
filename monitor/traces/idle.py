"""Idle time: by category per stream, as in Holistic Trace Analysis, and by cause for the device."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from monitor.traces.host import Host
from monitor.traces.intervals import (
    Interval,
    Intervals,
    difference,
    gaps,
    intersection,
    length,
    length_within,
)
from monitor.traces.report import IdleByCategory, IdleByCause
from monitor.traces.trace import NS, Work

KERNEL_WAIT_NS = 30_000
"""A shorter gap between two queued kernels is the device's own delay; the figure is that of Holistic Trace
Analysis."""
OUTSIDE_NS = 1_000_000
"""Python between two operators takes microseconds; a millisecond outside any operator is something else."""


def by_category(work: Sequence[Work]) -> IdleByCategory:
    """The gaps of one stream, whose work is in order."""
    host = kernel = other = 0
    ended = work[0].end
    for one in work[1:]:
        gap = one.begin - ended
        if gap > 0:
            if _late(one, ended):
                host += gap
            elif gap < KERNEL_WAIT_NS:
                kernel += gap
            else:
                other += gap
        ended = max(ended, one.end)
    return IdleByCategory(host / NS, kernel / NS, other / NS)


def _late(one: Work, ended: int) -> bool:
    return one.launch is not None and one.launch.begin > ended


class Gaps:
    """A device's idle intervals, by category."""

    def __init__(self, work: Sequence[Work], busy: Intervals) -> None:
        self.host: Intervals = []
        self.kernel: Intervals = []
        self.other: Intervals = []
        begins = [one.begin for one in work]
        for gap in gaps(busy):
            next_one = work[bisect_left(begins, gap[1])]
            self._room(next_one, gap).append(gap)

    def _room(self, next_one: Work, gap: Interval) -> Intervals:
        if _late(next_one, gap[0]):
            return self.host
        return self.kernel if gap[1] - gap[0] < KERNEL_WAIT_NS else self.other

    def by_category(self) -> IdleByCategory:
        return IdleByCategory(length(self.host) / NS, length(self.kernel) / NS, length(self.other) / NS)


def by_cause(idle: Gaps, host: Host) -> IdleByCause:
    """Every nanosecond of host wait is assigned to one cause, most specific first."""
    data = intersection(idle.host, host.data)
    copying = difference(intersection(idle.host, host.copying), data)
    left = _unexplained(idle, host)
    waited = sum(after_syncs(idle, host).values())
    outside = min(length(outside_operators(idle, host)), length(left) - waited)
    return IdleByCause(
        data_seconds=length(data) / NS,
        copy_seconds=length(copying) / NS,
        sync_seconds=waited / NS,
        launch_seconds=(length(left) - waited - outside) / NS,
        outside_seconds=outside / NS,
        kernel_wait_seconds=length(idle.kernel) / NS,
        other_seconds=length(idle.other) / NS,
    )


def _unexplained(idle: Gaps, host: Host) -> Intervals:
    """Host wait in which the loop neither waited for data nor copied."""
    return difference(difference(idle.host, host.data), host.copying)


def outside_operators(idle: Gaps, host: Host) -> Intervals:
    """Long periods of host wait without any operator or runtime call."""
    outside = difference(_unexplained(idle, host), host.working)
    return [(begin, end) for begin, end in outside if end - begin >= OUTSIDE_NS]


def after_syncs(idle: Gaps, host: Host) -> dict[int, int]:
    """Index of a sync → idle time it causes: the gap that began while the host waited in it, but no longer
    than that wait, since without it the host would be earlier by just that much."""
    found: dict[int, int] = {}
    left = _unexplained(idle, host)
    begins = [call.begin for call in host.syncs]
    for gap in idle.host:
        at = bisect_right(begins, gap[0]) - 1
        if at >= 0 and host.syncs[at].end >= gap[0]:
            caused = found.get(at, 0) + length_within(left, gap)
            found[at] = min(caused, host.syncs[at].end - host.syncs[at].begin)
    return found

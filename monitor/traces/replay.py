"""What if the host had not waited there? Moves the launches earlier by the host time removed before them, and
replays the streams.

The idle time right after a wait is less than the wait costs: with the host earlier, later gaps close too.
Kernels keep their durations and the device its delays between them. Where a kernel waits for another stream
this is optimistic, so the saving is an upper bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from monitor.traces.intervals import Intervals, length
from monitor.traces.trace import Work


def saving(work: Sequence[Work], busy: Intervals, removed: Intervals) -> int:
    """Nanoseconds by which the work would finish earlier, at most, without `removed` in the host's time."""
    if not removed:
        return 0
    span = busy[-1][1] - busy[0][0]
    return max(0, span - max(length(busy), _replayed(work, _Earlier(removed))))


class _Earlier:
    """How much earlier the host reaches a given moment."""

    def __init__(self, removed: Intervals) -> None:
        self._removed = removed
        self._begins = [begin for begin, _ in removed]
        self._before = [0, *accumulate(end - begin for begin, end in removed)]

    def __call__(self, moment: int) -> int:
        at = bisect_right(self._begins, moment)
        if at == 0:
            return 0
        return self._before[at] - max(0, self._removed[at - 1][1] - moment)


def _replayed(work: Sequence[Work], earlier: _Earlier) -> int:
    """From the first begin to the last end."""
    delays = [one.begin - one.launch.begin for one in work if one.launch is not None]
    latency = max(0, min(delays, default=0))
    was: dict[int, int] = {}
    now: dict[int, int] = {}
    first = last = None
    for one in work:
        begin = _begin(one, was.get(one.stream), now.get(one.stream), latency, earlier)
        was[one.stream] = max(one.end, was.get(one.stream, one.end))
        now[one.stream] = begin + one.end - one.begin
        first = begin if first is None else min(first, begin)
        last = max(now[one.stream], last or now[one.stream])
    return (last or 0) - (first or 0)


def _begin(one: Work, was: int | None, now: int | None, latency: int, earlier: _Earlier) -> int:
    """`was` and `now`: when the stream's previous work ended, in the trace and in the replay."""
    if one.launch is None:
        return one.begin if now is None or was is None else now + max(0, one.begin - was)
    call = one.launch
    called = call.begin - earlier(call.begin)
    if was is None or now is None:
        return called + one.begin - call.begin
    if call.begin >= was or one.begin <= call.end:  # it began as soon as it was launched
        return max(now, called + one.begin - call.begin)
    return max(now, called + latency) + max(0, one.begin - max(was, call.begin + latency))

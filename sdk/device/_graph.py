"""The steps of a window as a small graph: the host's own time, what it launches meanwhile, where it waits.

A segment lasts from one wait or mark to the next. The gain from changing the loop is estimated by replaying
the segments, so the host's time excludes its waits: they follow from the device's work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ._gaps import INTO, OUT_OF, Activity, Span

MOST = 96
"""Chosen: segments reported. If there are more, neighbors in a phase are merged, with all their waits."""
_FULL_NS, _FULL_TIMES = 50_000, 10
"""Chosen: a launch longer than this many ns, and this many times the usual, waited for room in the queue."""


class Segment(NamedTuple):
    """Times in ns, and counts."""

    phase: int
    host: int
    """The host's own time."""
    device: int = 0
    """Kernels launched meanwhile."""
    copies: int = 0
    """Copies launched meanwhile, by the time they occupy the stream."""
    reads: int = 0
    """The same for copies from device to host."""
    launches: int = 0
    syncs: int = 0
    """Waits at the end for the device: a value is read."""
    holds: int = 0
    """Waits at the end for a copy to the device."""

    def and_then(self, later: Segment) -> Segment:
        """Both merged into one."""
        return Segment(self.phase, *(one + other for one, other in zip(self[1:], later[1:], strict=True)))


class _Piece(NamedTuple):
    phase: int
    begin: int
    end: int
    syncs: bool = False
    holds: bool = False


Steps = Sequence[Sequence[tuple[int, int]]]
"""The marks of each step: host time, and the phase that begins."""


def step_graph(seen: Activity, steps: Steps) -> tuple[int, list[Segment]]:
    """How many consecutive steps fit, and their segments. No segments if even one step has too many
    phases."""
    for count in range(len(steps), 1, -1):
        if found := _graph(seen, steps[:count]):
            return count, found
    return 1, _graph(seen, steps[:1])


def _graph(seen: Activity, steps: Steps) -> list[Segment]:
    stops, full = _stops(seen), _full(seen)
    pieces = [piece for marks in steps for piece in _pieces(marks, stops)]
    launched = [_blank(piece, full) for piece in pieces]
    begins, end = [piece.begin for piece in pieces], pieces[-1].end
    for launch, work in _work(seen):
        if begins[0] <= launch < end:
            at = bisect_right(begins, launch) - 1
            launched[at] = launched[at].and_then(work)
    return _merged([one for one in launched if any(one[1:])])


def _stops(seen: Activity) -> list[tuple[Span, bool]]:
    """Where the host waits, and whether for a copy to the device, if that is what it last launched."""
    copied = {one.launched for one in seen.moves if INTO in one.name}
    asked = sorted({one.launched for one in (*seen.kernels, *seen.moves)})
    before = [asked[: bisect_right(asked, one.begin)][-1:] for one in seen.waits]
    waits = [(one, bool(copied.intersection(last))) for one, last in zip(seen.waits, before, strict=True)]
    return sorted([*waits, *((one, True) for one in seen.holds)])


def _pieces(marks: Sequence[tuple[int, int]], stops: Sequence[tuple[Span, bool]]) -> Iterator[_Piece]:
    for (begin, phase), (end, _) in pairwise(marks):
        for stop, copies in stops:
            if stop.end > begin and stop.begin < end:
                yield _Piece(phase, begin, max(begin, stop.begin), not copies, copies)
                begin = min(end, stop.end)
        yield _Piece(phase, begin, end)


def _blank(piece: _Piece, full: Sequence[Span]) -> Segment:
    """The piece without its device work; waiting for room in the queue is not the host's own time."""
    waited = sum(max(0, min(one.end, piece.end) - max(one.begin, piece.begin)) for one in full)
    host = max(0, piece.end - piece.begin - waited)
    return Segment(piece.phase, host, syncs=int(piece.syncs), holds=int(piece.holds))


def _full(seen: Activity) -> list[Span]:
    """Launches that waited for room in the queue."""
    if not seen.launches:
        return []
    from statistics import median  # only for a window: with decimal and fractions, it is slow to import

    usual = median([one.end - one.begin for one in seen.launches])
    return [one for one in seen.launches if one.end - one.begin > max(_FULL_NS, _FULL_TIMES * usual)]


def _work(seen: Activity) -> Iterator[tuple[int, Segment]]:
    """When each piece of work was launched, and what it adds there; overlapping kernels count once."""
    covered = 0
    for kernel in sorted(seen.kernels):
        fresh = max(0, kernel.end - max(kernel.begin, covered))
        covered = max(kernel.end, covered)
        yield kernel.launched, Segment(0, 0, device=fresh, launches=1)
    for copy in seen.moves:
        took = copy.end - copy.begin
        read = OUT_OF in copy.name
        yield copy.launched, Segment(0, 0, copies=0 if read else took, reads=took if read else 0, launches=1)


def _merged(segments: list[Segment]) -> list[Segment]:
    """Unchanged or, if there are too many, one for each run of segments in the same phase."""
    if len(segments) <= MOST:
        return segments
    found: list[Segment] = []
    for one in segments:
        if found and found[-1].phase == one.phase:
            found[-1] = found[-1].and_then(one)
        else:
            found.append(one)
    return found if len(found) <= MOST else []

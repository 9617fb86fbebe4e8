"""A run's own timeline: windows and readings by seconds since it started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from monitor.model.history import Series
from monitor.model.run import Run, Window

Point = tuple[float, float | None]
"""Seconds since the start, and a value that may be missing."""
GAP_INTERVALS = 3.0
"""Readings further apart than this many times their usual distance are not joined by a line."""


LEAST_GAP = 0.002
"""Share of what is shown: a gap narrower than a pixel or two is not seen."""


class Stretch(Struct, frozen=True):
    """A window of the timeline, extended to cover all of the steps that ended in it."""

    begin: float
    middle: float
    end: float
    window: Window


class Track(Struct, frozen=True):
    """One reading over the run's lifetime; a gap is a point without a value."""

    subject: str
    field: str
    points: tuple[Point, ...]
    highest: float


def stretches(run: Run, windows: Sequence[Window]) -> tuple[Stretch, ...]:
    """A step longer than a window leaves the windows before it empty: their time belongs to it."""
    found: list[Stretch] = []
    last = run.setup_seconds or 0.0
    for window in windows:
        end = window.start - run.started + window.seconds
        begin = max(last, end - max(window.seconds, window.steps_seconds))
        found.append(Stretch(begin, (begin + end) / 2.0, end, window))
        last = end
    return tuple(found)


def uncounted(run: Run, parts: Sequence[Stretch]) -> tuple[tuple[float, float], ...]:
    """Where there were steps, but none that counts: warm-up, and steps that were sampled. (begin, end)"""
    edges = [(0.0, run.setup_seconds or 0.0), *((part.begin, part.end) for part in parts)]
    return gaps(edges, run.elapsed_seconds)


def gaps(edges: Iterable[tuple[float, float]], length: float) -> tuple[tuple[float, float], ...]:
    """What lies between parts of a time of this length, where that can be seen."""
    between = ((before[1], after[0]) for before, after in pairwise(edges))
    return tuple((begin, end) for begin, end in between if end - begin > LEAST_GAP * length)


def last_step(run: Run) -> float | None:
    """When the first rank's latest step ended."""
    when = run.ranks[0].last_step_time if run.ranks else None
    return None if when is None else max(0.0, when - run.started)


def points(parts: Iterable[Stretch], figure: Callable[[Window], float | None]) -> list[Point]:
    """One figure across all windows; windows without a reading are skipped."""
    found = ((part.middle, figure(part.window)) for part in parts)
    return [(at, value) for at, value in found if value is not None]


def track(run: Run, series: Series) -> Track | None:
    """The part of a series within the run's lifetime; None if there is hardly any."""
    end = run.started + run.elapsed_seconds
    pairs = zip(series.time, series.mean, strict=True)
    inside = [(time - run.started, value) for time, value in pairs if run.started <= time <= end]
    if len(inside) < 2:
        return None
    return Track(series.subject, series.field, tuple(_with_gaps(inside)), max(value for _, value in inside))


def _with_gaps(inside: list[tuple[float, float]]) -> Iterable[Point]:
    distances = sorted(b[0] - a[0] for a, b in pairwise(inside))
    longest = GAP_INTERVALS * distances[len(distances) // 2]
    last: float | None = None
    for time, value in inside:
        if last is not None and time - last > longest:
            yield last, None
        yield time, value
        last = time

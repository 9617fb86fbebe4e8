"""A part of a run looked at more closely: the same figures in finer windows, from its single steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from msgspec.structs import replace

from monitor.catalog.dossier import POINTS, Dossier, own_readings
from monitor.model.errors import UserError
from monitor.model.history import HistoryPage
from monitor.model.run import Run, Window
from monitor.model.since_start import Stretch, gaps, stretches
from monitor.model.steps import Columns
from monitor.runs.figures import RankFigures

LEAST_SECONDS = 1.0
"""Chosen: of most runs, a narrower part is a few steps."""


class Source(Protocol):
    """A dossier's source that also knows single steps by their time."""

    def readings(self, start: float, end: float, points: int) -> HistoryPage | None: ...
    def columns(self, run: str, start: float, end: float) -> tuple[tuple[str, ...], list[Columns]]: ...


def close_up(source: Source, dossier: Dossier, begin: float, end: float) -> Dossier:
    """From `begin` to `end`, in seconds since the run's start; moved to where the run is, at least
    `LEAST_SECONDS` long. What is not about a moment stays that of the whole run."""
    run = dossier.run
    begin, end = _inside(begin, end, run.elapsed_seconds)
    start, stop = run.started + begin, run.started + end
    windows = _windows(*source.columns(run.id, start, stop))
    finer = [_with_gauges(one, run) for one in windows] if windows else run.timeline
    parts = [part for part in stretches(run, finer) if begin < part.middle < end]
    edges = ((part.begin, part.end) for part in parts)
    return replace(
        dossier,
        span=(begin, end),
        stretches=tuple(_cut(part, begin, end) for part in parts),
        uncounted=gaps(edges, end - begin),
        readings=own_readings(run, source.readings(start, stop, POINTS)),
    )


def span(begin: str | None, end: str | None) -> tuple[float, float]:
    """As somebody asked for it. Raises `UserError`."""
    try:
        found = float(begin or ""), float(end or "")
    except ValueError:
        found = math.nan, math.nan
    if not all(map(math.isfinite, found)):
        raise UserError("a part of a run is given by from and to, both in seconds since its start")
    return found


def _inside(begin: float, end: float, length: float) -> tuple[float, float]:
    begin, end = sorted((begin, end))
    missing = max(0.0, LEAST_SECONDS - (end - begin)) / 2.0
    begin = max(0.0, min(begin - missing, length - LEAST_SECONDS))
    return begin, max(begin + LEAST_SECONDS, min(end + missing, length))


def _windows(names: tuple[str, ...], steps: Iterable[Columns]) -> tuple[Window, ...]:
    """As the run's own timeline is made of them while it lasts."""
    figures = RankFigures(names)
    for columns in steps:
        figures.add(columns)
    return figures.timeline.windows(0) if figures.timeline is not None else ()


def _with_gauges(window: Window, run: Run) -> Window:
    """Readings that no step holds are those of the run's window at that time."""
    middle = window.start + window.seconds / 2.0
    at = next((one for one in run.timeline if one.start <= middle < one.start + one.seconds), None)
    if at is None:
        return window
    return replace(
        window,
        rss_bytes=at.rss_bytes,
        gpu_utilization_ratio=at.gpu_utilization_ratio,
        device_memory_bytes=window.device_memory_bytes or at.device_memory_bytes,
    )


def _cut(part: Stretch, begin: float, end: float) -> Stretch:
    return replace(part, begin=max(part.begin, begin), end=min(part.end, end))

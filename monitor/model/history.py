"""What the history keeps: runs as last seen, and readings over time."""

from __future__ import annotations

from msgspec import Struct

from monitor.model.finding import Finding
from monitor.model.run import Run


class RunRecord(Struct, frozen=True):
    """A run as last seen, with its findings."""

    run: Run
    findings: tuple[Finding, ...] = ()
    updated: float = 0.0


class Series(Struct, frozen=True):
    """One reading over time; each entry of `time` is the start of its interval."""

    subject: str
    """gpu:UUID, host, or run:ID."""
    field: str
    time: tuple[float, ...]
    low: tuple[float, ...]
    mean: tuple[float, ...]
    high: tuple[float, ...]


class HistoryPage(Struct, frozen=True):
    """All readings over a period at one resolution."""

    start: float
    end: float
    seconds: float
    """Width of an interval."""
    series: tuple[Series, ...] = ()

"""Memory that grows with the steps: told apart from warm-up by what the later half does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from monitor.advice.context import RunContext

LEAST_POINTS, SURE_POINTS = 4, 6
"""Points needed at all, and below which only growth that is large and without a pause counts."""
STEADY = 0.25
"""Of the mean rate: what a stretch must grow by to count as growing."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth over the later part of a run."""

    bytes: float
    steps: int

    @property
    def per_step(self) -> float:
        return self.bytes / self.steps if self.steps else 0.0


def host_growth(run: RunContext) -> Growth | None:
    """Resident memory of the training process that keeps growing."""
    points = [(point.steps, point.rss_bytes) for point in run.history if point.rss_bytes]
    return _growth(_longer(points, _timeline(run, "rss_bytes")), run)


def device_growth(run: RunContext) -> Growth | None:
    """Allocated device memory that keeps growing."""
    points = [(point.steps, point.device_bytes) for point in run.history if point.device_bytes]
    return _growth(_longer(points, _timeline(run, "device_memory_bytes")), run)


def _longer(watched: list[tuple[int, int]], told: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What was watched happening; for a run found later, what its timeline tells."""
    return watched if len(_distinct(watched)) >= LEAST_POINTS else told


def _timeline(run: RunContext, name: str) -> list[tuple[int, int]]:
    windows = [(window.first_step, getattr(window, name)) for window in run.run.timeline]
    return [(step, value) for step, value in windows if value]


def _growth(points: Sequence[tuple[int, int]], run: RunContext) -> Growth | None:
    """Growth in the later half, when it is large, steady, and not levelling off."""
    points = _distinct(points)
    if len(points) < LEAST_POINTS:
        return None
    few = len(points) < SURE_POINTS
    middle = len(points) // 3
    early, late = points[: middle + 1], points[middle:]
    grown, steps = late[-1][1] - late[0][1], late[-1][0] - late[0][0]
    least = 3.0 if few else 1.0
    if steps <= 0 or grown < least * run.policy.leak_bytes:
        return None
    if grown / steps < least * run.policy.leak_bytes_per_step:
        return None
    first_rate = (early[-1][1] - early[0][1]) / max(1, early[-1][0] - early[0][0])
    levelling = grown / steps < 0.35 * first_rate
    rising = sum(b - a > STEADY * grown / steps * (after - at) for (at, a), (after, b) in pairwise(late))
    enough = (1.0 if few else 0.75) * (len(late) - 1)
    steady = rising >= enough and not levelling and grown >= run.policy.leak_ratio * late[0][1]
    return Growth(float(grown), steps) if steady else None


def _distinct(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Points at different steps: a stalled run does not grow."""
    kept: list[tuple[int, int]] = []
    for point in points:
        if not kept or point[0] > kept[-1][0]:
            kept.append(point)
    return kept

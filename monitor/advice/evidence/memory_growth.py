"""Memory that grows with the steps; the later part of the run tells it from warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from monitor.advice.context.run import RunContext

LEAST_POINTS, SURE_POINTS = 4, 6
"""Points needed at all, and below which only large, uninterrupted growth counts."""
STEADY = 0.25
"""An interval counts as growing if it grows by this share of the mean rate."""
FEW_FACTOR = 3.0
"""With few points, growth must be this many times the policy's thresholds."""
MANY_STEPS, FEW_RATIO = 100, 0.5
"""With fewer later steps than this, growth below this share of the initial memory may still be allocators and
libraries warming up: a healthy run grew by 88 MiB in 79 steps, where a slow machine had time for many
points."""
EARLY_PART = 3
"""The first third of the points may be warm-up and does not count."""
LEVELLING = 0.35
"""Growth below this share of the early rate is levelling off."""
RISING_SHARE = 0.75
"""Share of the later intervals that must grow."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth over the later part of a run."""

    bytes: float
    steps: int

    @property
    def per_step(self) -> float:
        return self.bytes / self.steps if self.steps else 0.0


def host_growth(run: RunContext) -> Growth | None:
    """Growth of the training process's resident memory, if it continues."""
    points = [(point.steps, point.rss_bytes) for point in run.history if point.rss_bytes]
    return _growth(_longer(points, _timeline(run, "rss_bytes")), run)


def device_growth(run: RunContext) -> Growth | None:
    """Growth of allocated device memory, if it continues."""
    points = [(point.steps, point.device_bytes) for point in run.history if point.device_bytes]
    return _growth(_longer(points, _timeline(run, "device_memory_bytes")), run)


def _longer(watched: list[tuple[int, int]], recorded: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What the engine saw from tick to tick; for a run discovered late, what its timeline recorded."""
    return watched if len(_distinct(watched)) >= LEAST_POINTS else recorded


def _timeline(run: RunContext, name: str) -> list[tuple[int, int]]:
    windows = [(window.first_step, getattr(window, name)) for window in run.run.timeline]
    return [(step, value) for step, value in windows if value]


def _growth(points: Sequence[tuple[int, int]], run: RunContext) -> Growth | None:
    """Growth in the later part, if it is large, steady, and not levelling off."""
    points = _distinct(points)
    if len(points) < LEAST_POINTS:
        return None
    few = len(points) < SURE_POINTS
    middle = len(points) // EARLY_PART
    early, late = points[: middle + 1], points[middle:]
    grown, steps = late[-1][1] - late[0][1], late[-1][0] - late[0][0]
    least = FEW_FACTOR if few else 1.0
    if steps <= 0 or grown < least * run.policy.leak_bytes:
        return None
    if grown / steps < least * run.policy.leak_bytes_per_step:
        return None
    first_rate = (early[-1][1] - early[0][1]) / max(1, early[-1][0] - early[0][0])
    levelling = grown / steps < LEVELLING * first_rate
    rising = sum(b - a > STEADY * grown / steps * (after - at) for (at, a), (after, b) in pairwise(late))
    enough = (1.0 if few else RISING_SHARE) * (len(late) - 1)
    ratio = run.policy.leak_ratio if steps >= MANY_STEPS else FEW_RATIO
    steady = rising >= enough and not levelling and grown >= ratio * late[0][1]
    return Growth(float(grown), steps) if steady else None


def _distinct(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Points at distinct steps: a stalled run does not grow."""
    kept: list[tuple[int, int]] = []
    for point in points:
        if not kept or point[0] > kept[-1][0]:
            kept.append(point)
    return kept

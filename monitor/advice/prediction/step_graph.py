"""A few steps as a small graph, and what happens when it is replayed repeatedly.

A segment is a period of the host's own time, the work it launches meanwhile (evenly spread), and whether the
host waits for the device at its end. Host and device each run as fast as they can: the device starts a kernel
once it is launched and the previous one is done; after a wait, the host continues once all work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

ROUNDS = 3
"""How often the graph is replayed: by the last round, the lead of host or device has settled."""
FITS = 6
"""How often the host's times are adjusted to make the graph reproduce the measurement."""
FIELDS, TIMES = 8, 4
"""Of a segment as written by the SDK: its phase, times in µs, counts; `sdk/device/_graph.py` names them."""
MICRO = 1e6
"""Microseconds in a second."""
MOST_SEGMENTS, MOST_FIGURE = 200, 1e12
"""Limits, since a ring may contain anything."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Seconds and counts."""

    phase: str
    host: float
    """The host's own time, without waits."""
    device: float = 0.0
    copies: float = 0.0
    """Copies to the device on its stream."""
    reads: float = 0.0
    """Copies from the device to the host."""
    launches: float = 1.0
    syncs: float = 0.0
    """Waits for the device, spread over the segment, the last one at its end."""
    holds: float = 0.0
    """The same, for a copy to the device."""
    waited: float = 1.0
    """How much of these waits remains: all, or none if they were dropped."""


class Played(NamedTuple):
    """Seconds per step in the last replay."""

    period: float
    host: Mapping[str, float]
    """Host time by phase, including waits."""


@dataclass(frozen=True)
class StepGraph:
    """A number of consecutive steps."""

    segments: tuple[Segment, ...] = ()
    steps: int = 1

    @cached_property
    def played(self) -> Played:
        host = device = began = 0.0
        spent: dict[str, float] = {}
        for _ in range(ROUNDS):
            began, spent = max(host, device), {}
            for one in self.segments:
                before = host
                host, device = _play(one, host, device)
                spent[one.phase] = spent.get(one.phase, 0.0) + host - before
        by_step = {phase: seconds / self.steps for phase, seconds in spent.items()}
        return Played((max(host, device) - began) / self.steps, by_step)

    @cached_property
    def own(self) -> dict[str, float]:
        """The host's own seconds per step, by phase."""
        found: dict[str, float] = {}
        for one in self.segments:
            found[one.phase] = found.get(one.phase, 0.0) + one.host / self.steps
        return found

    @property
    def work(self) -> float:
        """Kernel seconds per step on the device."""
        return sum(one.device for one in self.segments) / self.steps

    def waited(self, phase: str) -> float:
        """Seconds per step the host waits in a phase."""
        return max(0.0, self.played.host.get(phase, 0.0) - self.own.get(phase, 0.0))

    def changed(self, change: Callable[[Segment], Segment]) -> StepGraph:
        return replace(self, segments=tuple(map(change, self.segments)))

    def and_then(self, more: Mapping[str, float], work: Mapping[str, float], launches: float) -> StepGraph:
        """Appends these phases, with the host's and the device's seconds per step."""
        added = tuple(
            Segment(phase, own * self.steps, work.get(phase, 0.0) * self.steps, launches=launches)
            for phase, own in more.items()
        )
        return replace(self, segments=self.segments + added)

    def working(self, seconds: float) -> StepGraph:
        """Scaled to this much device work per step: kernels may take longer than in the sampled steps."""
        factor = seconds / self.work if self.work > 0 else 1.0
        return self.changed(lambda one: replace(one, device=one.device * factor))

    def fitted(self, host: Mapping[str, float], slower: bool) -> StepGraph:
        """Adjusts the host's own times so that it spends in each phase what was measured, since the graph
        comes from sampled steps. `slower`: own times may also grow; otherwise the host waited for room in the
        queue."""
        graph = self
        for _ in range(FITS):
            graph = graph._nearer(host, inf if slower else 1.0)
        return graph

    def _nearer(self, host: Mapping[str, float], most: float) -> StepGraph:
        factors = {
            phase: min(most, max(0.0, 1.0 + (host.get(phase, 0.0) - self.played.host[phase]) / own))
            for phase, own in self.own.items()
            if own > 0
        }
        return self.changed(lambda one: replace(one, host=one.host * factors.get(one.phase, 1.0)))


def _play(one: Segment, host: float, device: float) -> tuple[float, float]:
    """The times of host and device after it."""
    parts = max(1, round(one.syncs + one.holds))
    own, work = one.host / parts, (one.device + one.copies + one.reads) / parts
    launches = max(1.0, one.launches / parts)
    for _ in range(parts):
        began, host = host, host + own
        if work > 0:  # for equal kernels at equal intervals, either the first or the last decides
            device = max(device + work, began + own / launches + work, host + work / launches)
        if one.syncs or one.holds:
            host += one.waited * max(0.0, device - host)
    return host, device


def told(raw: Any) -> StepGraph | None:
    """From the run's configuration; None if it is not what the SDK writes."""
    steps, segments = (raw.get("steps"), raw.get("segments")) if isinstance(raw, dict) else (None, None)
    if not isinstance(steps, int) or steps < 1 or not isinstance(segments, list):
        return None
    found = [one for one in map(_segment, segments[: MOST_SEGMENTS + 1]) if one is not None]
    whole = 0 < len(found) == len(segments) <= MOST_SEGMENTS
    return StepGraph(tuple(found), steps) if whole else None


def _segment(raw: Any) -> Segment | None:
    if not isinstance(raw, list) or len(raw) != FIELDS or not isinstance(raw[0], str):
        return None
    figures = [value for value in raw[1:] if isinstance(value, int | float) and 0 <= value < MOST_FIGURE]
    if len(figures) != FIELDS - 1:
        return None
    seconds = (value / MICRO for value in figures[:TIMES])
    return Segment(raw[0], *seconds, *figures[TIMES:])

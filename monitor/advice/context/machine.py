"""The machine as rules see it, and what the engine remembers of a run's past."""

from __future__ import annotations

from dataclasses import dataclass, field

from monitor.model.policy import Policy
from monitor.model.snapshot import Snapshot


@dataclass(frozen=True)
class MachineContext:
    """The whole picture, for rules about GPUs and the host rather than about one run."""

    snapshot: Snapshot
    policy: Policy
    idle_since: dict[str, float] = field(default_factory=dict)
    """GPU uuid → wall time since when it holds memory or a run and does nothing."""


@dataclass(frozen=True, slots=True)
class Point:
    """One tick of the past, kept by the engine for what only shows over time."""

    steps: int
    rss_bytes: int | None
    device_bytes: int | None
    other_cpu: float | None = None
    """Cores that processes outside the run kept busy."""
    cpu_pressure: float | None = None
    """Share of the time in which tasks waited for a core."""

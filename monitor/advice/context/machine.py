"""The machine as rules see it, and what the engine remembers of a run's past."""

from __future__ import annotations

from dataclasses import dataclass, field

from monitor.model.policy import Policy
from monitor.model.snapshot import Snapshot


@dataclass(frozen=True)
class MachineContext:
    """The whole snapshot, for rules about GPUs and the host rather than one run."""

    snapshot: Snapshot
    policy: Policy
    idle_since: dict[str, float] = field(default_factory=dict)
    """GPU uuid → wall time since which it has held memory or a run without doing anything."""


@dataclass(frozen=True, slots=True)
class Point:
    """One past tick, kept by the engine for effects that only show over time."""

    steps: int
    rss_bytes: int | None
    device_bytes: int | None
    other_cpu: float | None = None
    """Cores that processes outside the run kept busy."""
    trainer_cpu: float | None = None
    """Cores a training process kept busy, without its loader workers."""
    cpu_pressure: float | None = None
    """Share of the time in which tasks waited for a core."""

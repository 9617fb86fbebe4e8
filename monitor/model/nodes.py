"""A run over several machines: what each of them does for it, and what their waiting costs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NodeState = Literal["running", "stalled", "ended", "failed", "killed", "lost"]
"""As of a run; "lost": it reported ranks of the run, had not ended, and reports no more."""


class Node(Struct, frozen=True):
    """One machine of a run. Seconds are those of a step; what its figures do not tell is None."""

    name: str
    """The scrape target without its port, where that tells it from the others."""
    state: NodeState
    ranks: tuple[int, ...] = ()
    instance: str = ""
    """The scrape target, as Prometheus labels it."""
    hostname: str | None = None
    unreachable: bool = False
    """Prometheus tried to scrape it and could not."""
    last_step_time: float | None = None
    silent_seconds: float | None = None
    """Since the newest step of its ranks."""
    steps: int | None = None
    """Of the rank that is furthest behind."""
    step_seconds: float | None = None
    own_seconds: float | None = None
    """Work of its slowest rank's own; waiting for other ranks is not in it."""
    least_own_seconds: float | None = None
    """The same of its fastest rank: a slow node is slow on all of its ranks."""
    skew_ratio: float | None = None
    """`own_seconds` over that of the usual node: 1 is no skew."""
    phase: str | None = None
    """Where its slowest rank differs most from the usual rank, and by how much."""
    extra_seconds: float | None = None
    wait_share: float | None = None
    """Share of the step its ranks wait for slower ones, on average."""
    gpus: int = 0
    busy_ratio: float | None = None
    """Mean use of the run's GPUs there."""


class Waste(Struct, frozen=True):
    """What a run had and did not use, in hours of one GPU or rank."""

    waiting_rank_hours: float | None = None
    """Ranks waiting for slower ones, over the whole run. A GPU that waits in a collective looks busy."""
    held_gpu_hours: float | None = None
    """GPUs the run had, over the time that was asked about; so is the next."""
    idle_gpu_hours: float | None = None
    """Of these, the time without a kernel."""

"""What the user has chosen to see, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from monitor.model.gpu import Gpu
from monitor.model.run import WORST_FIRST, Run

ATTENTION: dict[str, int] = {
    "lost": 0, "hung": 0, "error": 0, "stalled": 1, "starved": 2, "throttled": 3, "idle": 5,
}  # fmt: skip
"""Condition of a GPU → its rank, worst first; all that work share one rank, so they keep their order."""
WORKS = 4
ORDERS: dict[str, tuple[Callable[[Gpu], Any], Callable[[Run], Any]]] = {
    "worst": (
        lambda gpu: ATTENTION.get(gpu.condition, WORKS),
        lambda run: (run.superseded, WORST_FIRST.index(run.condition)),
    ),
    "number": (lambda gpu: 0, lambda run: 0),
    "use": (lambda gpu: -(gpu.utilization_ratio or 0.0), lambda run: -(run.iterations_per_second or 0.0)),
    "memory": (lambda gpu: -(gpu.memory_used_ratio or 0.0), lambda run: 0),
    "name": (lambda gpu: gpu.run_labels or ("~",), lambda run: run.name),
}
"""How GPUs and runs can be ordered; ties keep their host's order."""


class Pick(NamedTuple):
    """Which part of a frame to show, and in which order."""

    order: str = "worst"
    words: str = ""
    """Each word must occur in what is shown."""
    user: str | None = None
    """Show only what belongs to this user."""


ALL = Pick()

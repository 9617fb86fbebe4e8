"""What stands for a device where there is none to time, which is all that a loop without one imports."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

SHARE = 0.005
"""Chosen: what marks may cost as a share of the time."""


class NoDevice:
    """The null counterpart of `DeviceLane`: no device, or one without events."""

    active = False
    share = SHARE
    """What marks may cost of the time."""
    skipped = 0
    """Steps that could not be timed: no free event, too many marks, or a graph was being captured."""

    def allow(self, share: float) -> None:
        """Marks may cost this share: an experiment needs every step."""
        self.share = share

    def mark(self, phase: int, now: int) -> None:
        """The loop enters `phase`."""

    def relabel(self, phase: int) -> None:
        """The open phase has been `phase` all along."""

    def step_ended(self, number: int, record: memoryview | array[int]) -> None:
        """This record is being committed: it says where its step began and ended, and carries a result."""

    def scalars(self, name: Callable[[int], str]) -> dict[str, float]:
        """Figures by phase, over the steady steps."""
        return {}

    def syncs(self) -> list[dict[str, Any]] | None:
        """Lines at which the host waits for the device; None: not yet known."""
        return None

    def kernels(self) -> list[dict[str, Any]] | None:
        """The heaviest kernels and their shares of the device's work; None: not yet known."""
        return None

    def graph(self, name: Callable[[int], str]) -> dict[str, Any] | None:
        """Some steps as segments of the host's time (`_graph.Segment`, in µs); None: not yet known."""
        return None

    def close(self) -> None:
        """The run is over."""

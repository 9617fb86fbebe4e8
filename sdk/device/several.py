"""Several devices that work for one loop: each is timed by itself, by the same marks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

from .absent import SHARE, NoDevice
from .lane import DeviceLane


class SeveralDevices(NoDevice):
    """The records carry the results of the first; of the others we report how long they are idle, never a
    sum or mean over devices: one may work while another waits for it."""

    active = True

    def __init__(self, first: DeviceLane, others: Mapping[str, DeviceLane]) -> None:
        self._first = first
        self._others = others
        self.allow(SHARE)

    @property
    def _lanes(self) -> tuple[DeviceLane, ...]:
        """The first leads: the others read what its profiler saw."""
        return (self._first, *self._others.values())

    def allow(self, share: float) -> None:
        """Of all together."""
        self.share = share
        for lane in self._lanes:
            lane.allow(share / len(self._lanes))

    def mark(self, phase: int, now: int) -> None:
        for lane in self._lanes:
            lane.mark(phase, now)

    def relabel(self, phase: int) -> None:
        for lane in self._lanes:
            lane.relabel(phase)

    def step_ended(self, number: int, record: memoryview | array[int]) -> None:
        self._first.step_ended(number, record)
        self.skipped = self._first.skipped
        for lane in self._others.values():
            lane.step_ended(number, array("Q", record))

    def scalars(self, name: Callable[[int], str]) -> dict[str, float]:
        found = self._first.scalars(name)
        for device, lane in self._others.items():
            found |= self._of_other(device, lane)
        return found

    def _of_other(self, device: str, lane: DeviceLane) -> dict[str, float]:
        kernels = lane.kernels_per_step
        if kernels is None:
            # No window at all, or one that saw the first device work and this one not.
            return {} if self._first.kernels_per_step is None else {f"device.other_kernels.{device}": 0.0}
        found = {f"device.other_kernels.{device}": kernels}
        return found if lane.idle_ratio is None else found | {f"device.other_idle.{device}": lane.idle_ratio}

    def syncs(self) -> list[dict[str, Any]] | None:
        return self._first.syncs()

    def kernels(self) -> list[dict[str, Any]] | None:
        return self._first.kernels()

    def graph(self, name: Callable[[int], str]) -> dict[str, Any] | None:
        return self._first.graph(name)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()

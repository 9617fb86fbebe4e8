"""Device time of the steady steps, summed by phase: what a run reports about its device every second."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ._step import Piece

_HALVED_AT = 512
"""Chosen: beyond this many steps, older ones count less and less, so that the figures follow a change."""


class DeviceSums:
    """Sums over steps, halved from time to time."""

    def __init__(self) -> None:
        self.steps = self.known = 0.0
        """Steps measured, and those whose idle time is known."""
        self._device: dict[int, float] = {}
        self._idle: dict[int, float] = {}
        self._ends: dict[int, float] = {}
        self._empty: dict[int, float] = {}
        self._lag = 0.0
        self._whole = self._without_work = 0.0
        """ns of the steps whose idle time is known."""

    def judged(self, whole: int, idle: int) -> None:
        """A step's idle time is known."""
        self._whole += whole
        self._without_work += idle

    @property
    def idle_ratio(self) -> float | None:
        """Share of the device's time without work; None: unknown."""
        return self._without_work / self._whole if self._whole else None

    def add(self, parts: Sequence[Piece], idle: Mapping[int, int] | None) -> None:
        if self.steps >= _HALVED_AT:
            self._halve()
        self.steps += 1
        for part in parts:
            _add(self._device, part.phase, part.device_ns)
            _add(self._ends, part.phase, 1)
            _add(self._empty, part.phase, part.empty)
        self._lag += sum(part.lag_ns for part in parts) / max(1, len(parts))
        if idle is not None:
            self.known += 1
            for phase, took in idle.items():
                _add(self._idle, phase, took)

    def _halve(self) -> None:
        self.steps, self.known, self._lag = self.steps / 2, self.known / 2, self._lag / 2
        self._whole, self._without_work = self._whole / 2, self._without_work / 2
        for sums in (self._device, self._idle, self._ends, self._empty):
            for phase in sums:
                sums[phase] /= 2

    def scalars(self, name: Callable[[int], str]) -> dict[str, float]:
        """Seconds per step and shares, under the ring's names for them."""
        if not self.steps:
            return {}
        found = {"device.steps": self.steps, "device.lag_s": self._lag / self.steps / 1e9}
        for phase, took in self._device.items():
            found[f"device.time_s.{name(phase)}"] = took / self.steps / 1e9
            found[f"device.empty.{name(phase)}"] = self._empty[phase] / self._ends[phase]
        if self.known:
            found["device.known"] = self.known
            for phase, took in self._idle.items():
                found[f"device.idle_s.{name(phase)}"] = max(0.0, took / self.known / 1e9)
        return found


def _add(sums: dict[int, float], phase: int, value: float) -> None:
    sums[phase] = sums.get(phase, 0.0) + value

"""A host and an asynchronous device on one clock: what a loop does on them, and the truth about it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import pytest

from sdk import ring
from sdk.device import _marks, lane
from sdk.device._kernels import KernelWindow
from sdk.device._marks import Marks
from sdk.device.lane import DeviceLane

US = 1000


@dataclass
class Machine:
    """Times in ns. `idle` is how long the device waited, by the host's phase at the time."""

    now: int = 10**9
    done: int = 10**9
    """When the device will have finished what it was given."""
    phase: int = 0
    idle: dict[int, int] = field(default_factory=dict)
    work: dict[int, int] = field(default_factory=dict)
    launched: list[tuple[int, int, int]] = field(default_factory=list)
    drift: float = 0.0
    """How much faster the device's clock runs."""
    answers: bool = True
    events: int = 0

    def host(self, ns: int) -> None:
        waited = max(0, self.now + ns - max(self.now, self.done))
        self.idle[self.phase] = self.idle.get(self.phase, 0) + waited
        self.now += ns

    def launch(self, ns: int) -> None:
        begin = max(self.now, self.done)
        self.done = begin + ns
        self.launched.append((begin, self.done, self.now))
        self.work[self.phase] = self.work.get(self.phase, 0) + ns

    def sync(self) -> None:
        self.now = max(self.now, self.done)

    def event(self) -> Event:
        self.events += 1
        return Event(self)

    def marks(self) -> Marks:
        return Marks(self.event, lambda: None)


class Event:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.at = 0

    def record(self, stream: Any) -> None:
        self.at = max(self.machine.now, self.machine.done)

    def query(self) -> bool:
        return self.machine.answers and self.at <= self.machine.now

    def elapsed_time(self, end: Event) -> float:
        return (end.at - self.at) * (1 + self.machine.drift) / 1e6

    def synchronize(self) -> None:
        raise AssertionError("never wait for the device")


class Loop:
    """Drives a lane as the recorder does."""

    def __init__(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, window: KernelWindow | None = None
    ) -> None:
        self.machine = machine
        for module in (_marks, lane):
            monkeypatch.setattr(module, "clock", lambda: machine.now)
        self.lane = DeviceLane(machine.marks(), window=window)
        self.steps = 0
        self.begin = machine.now
        self.records: list[array[int]] = []

    def mark(self, phase: int) -> None:
        self.machine.phase = phase
        self.lane.mark(phase, self.machine.now)

    def begin_step(self, phase: int, *, flags: int = 0, committed_first: bool = False) -> None:
        """End the open step here and begin the next; the recorder commits before or after the mark."""
        at = self.machine.now
        if not committed_first:
            self.mark(phase)
        if self.steps or self.begin < at:
            self._commit(at, flags)
        if committed_first:
            self.mark(phase)
        self.begin = at

    def _commit(self, at: int, flags: int) -> None:
        self.steps += 1
        record = array("Q", ring.EMPTY_RECORD)
        record[ring.W_BEGIN], record[ring.W_END], record[ring.W_FLAGS] = self.begin, at, flags
        self.lane.step_ended(self.steps, record)
        self.records.append(record)

    def scalars(self) -> dict[str, float]:
        return self.lane.scalars(str)

    def results(self) -> list[tuple[int, int]]:
        words = [one for one in self.records if one[ring.W_DEVICE_SEQ]]
        return [(one[ring.W_DEVICE_BUSY], one[ring.W_DEVICE_STARVED]) for one in words]

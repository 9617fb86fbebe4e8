"""Readings too slow for the tick: PCIe throughput, which a card measures for 20 ms per direction.

They have their own gate and period. The tick never waits for them; it takes the last result, unless that is
too old to count as current.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any

import pynvml

from monitor.gpu.calls import ABSENT_CODES, RETRY_ABSENT, check, find_function
from monitor.gpu.gate import Batch, Gate, Job

PERIOD = 5.0
"""Our choice: 40 ms per card every five seconds is below 1 % of the time."""
PATIENCE = 2.0
"""After this many seconds a call counts as stuck; a measurement takes 40 ms."""
KILOBYTE = 1000
Throughput = tuple[float | None, float | None]


class PcieThroughput:
    """Transmit and receive of one GPU, in bytes per second."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._function = find_function("nvmlDeviceGetPcieThroughput")
        self._result: Throughput = (None, None)
        self._time = 0.0
        self._retry_at = 0.0

    def due(self, now: float) -> bool:
        return self._function is not None and now >= self._retry_at

    def measure(self) -> None:
        transmit = self._ask(pynvml.NVML_PCIE_UTIL_TX_BYTES)
        receive = self._ask(pynvml.NVML_PCIE_UTIL_RX_BYTES) if transmit is not None else None
        self._result, self._time = (transmit, receive), time.monotonic()

    def latest(self, now: float) -> Throughput:
        """The last result, unless it is more than 2.5 periods old."""
        return self._result if now - self._time <= 2.5 * PERIOD else (None, None)

    def _ask(self, direction: int) -> float | None:
        out = ctypes.c_uint()
        code = self._function(self._handle, direction, ctypes.byref(out)) if self._function else 13
        if code in ABSENT_CODES:
            self._retry_at = time.monotonic() + RETRY_ABSENT
        check(code)
        return None if code else float(out.value * KILOBYTE)


class SlowLane:
    """Keeps the slow readings of all GPUs running, independent of the tick."""

    def __init__(self) -> None:
        self.gate = Gate(PATIENCE)
        self._batch: Batch | None = None
        self._next = 0.0

    def halt(self, deadline: float) -> bool:
        """Take back jobs not started and wait for the others; False if a call does not return."""
        self.gate.close()
        self._batch = None
        return self.gate.drain(deadline)

    def poke(self, now: float, readings: Sequence[tuple[int, PcieThroughput]]) -> None:
        """Called every tick: checks on the current round and starts the next one when it is due."""
        if self._batch is not None:
            if not self.gate.watch(self._batch) and self._batch.worker is not None:
                return
            self._batch = None
        if now < self._next:
            return
        jobs = [
            Job(index, reading.measure)
            for index, reading in readings
            if reading.due(now) and not self.gate.busy(index)
        ]
        if jobs:
            self._batch = self.gate.start(jobs)
        self._next = now + PERIOD

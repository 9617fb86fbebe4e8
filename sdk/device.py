"""Device time without waiting for the device: events from a pool, read when they have happened.

A step has two events on the stream: where its work begins (the batch is here) and where it ends. Busy
is begin → end; starved is the end of the step before → begin: the stream had nothing to do. How many
steps are still in flight is the queue depth; 0 or 1 means the host cannot keep ahead.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

from . import ring

POOL = 64


class Flight:
    """A step under way on the device."""

    __slots__ = ("begin", "end", "number")

    def __init__(self, begin: Any, end: Any) -> None:
        self.begin = begin
        self.end = end
        self.number = 0
        """Of the record it belongs to; 0 until that is known."""


class DeviceTimer:
    """`make_event()` gives an event with record, query and elapsed_time (milliseconds)."""

    def __init__(self, make_event: Callable[[], Any], capturing: Callable[[], bool] = lambda: False) -> None:
        self._make = make_event
        self._capturing = capturing
        self._free: list[Flight] = []
        self._made = 0
        self._flying: deque[Flight] = deque()
        self._open: Flight | None = None
        self._last: Flight | None = None
        self.skipped = 0
        """Steps without device times: the pool was empty, or a graph was being captured."""
        self.captured = False

    def begin(self) -> None:
        """The step's work begins on the stream here."""
        if self._open is not None:
            self._free.append(self._open)
            self._open = None
        if self._capturing():
            self.captured = True
            self.skipped += 1
            return
        flight = self._take()
        if flight is None:
            self.skipped += 1
            return
        flight.begin.record()
        self._open = flight

    def _take(self) -> Flight | None:
        if self._free:
            return self._free.pop()
        if self._made >= POOL:
            return None
        self._made += 1
        return Flight(self._make(), self._make())

    def end(self) -> Flight | None:
        """The step's work has been handed to the stream. The flight still wants its number."""
        flight, self._open = self._open, None
        if flight is None:
            return None
        if self._capturing():
            self.captured = True
            self.skipped += 1
            self._free.append(flight)
            return None
        flight.end.record()
        flight.number = 0
        self._flying.append(flight)
        return flight

    def collect(self, record: memoryview | array[int]) -> None:
        """Put the oldest finished step's times into the record being committed; never waits."""
        record[ring.W_QUEUE_DEPTH] = len(self._flying)
        if self.captured:
            record[ring.W_FLAGS] |= ring.F_CAPTURED
            self.captured = False
        if not self._flying or not self._flying[0].number or not self._flying[0].end.query():
            return
        done = self._flying.popleft()
        before = self._last
        record[ring.W_DEVICE_SEQ] = done.number
        record[ring.W_DEVICE_BUSY] = _ns(done.begin.elapsed_time(done.end))
        if before is not None:
            if before.number == done.number - 1:
                record[ring.W_DEVICE_STARVED] = _ns(before.end.elapsed_time(done.begin))
            self._free.append(before)
        self._last = done
        self._drain()

    def _drain(self) -> None:
        """A record carries one result; when they pile up the oldest finished ones are let go."""
        while len(self._flying) > POOL // 2 and self._flying[0].number and self._flying[0].end.query():
            old = self._flying.popleft()
            if self._last is not None:
                self._free.append(self._last)
            self._last = old
            self.skipped += 1


def _ns(milliseconds: float) -> int:
    return max(0, int(milliseconds * 1e6))


def open_timer(device: str | None) -> DeviceTimer | None:
    """A timer for the device the parameters are on; None on the CPU."""
    if device is None or device.startswith(("cpu", "meta")):
        return None
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    kind = device.partition(":")[0]
    capturing = torch.cuda.is_current_stream_capturing if kind == "cuda" else lambda: False
    try:
        torch.Event(device=kind, enable_timing=True)
    except (RuntimeError, NotImplementedError, TypeError):
        return None
    return DeviceTimer(lambda: torch.Event(device=kind, enable_timing=True), capturing)

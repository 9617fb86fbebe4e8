"""Pooled events of one device, recorded together with the host's time and never waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

clock = time.monotonic_ns
POOL = 2048
"""Chosen: marks that may be in flight. Bounds the memory if the device never answers."""


class Mark:
    """A point in the loop: the host reached it at `at`; the device reaches it when `event` occurs."""

    __slots__ = ("at", "event", "holders", "named", "phase")

    def __init__(self, event: Any) -> None:
        self.event = event
        self.phase = self.named = self.at = self.holders = 0
        """The phase that begins here; the recorder's time of this mark, by which it is found again; the
        host's time at the event; how many still need the event."""


class Marks:
    """`make` returns an event with record(stream), query() and elapsed_time(later) in milliseconds; `stream`
    returns the stream the loop is using."""

    def __init__(self, make: Callable[[], Any], stream: Callable[[], Any]) -> None:
        self._make = make
        self._stream = stream
        self._free: list[Mark] = []
        self._made = 0

    def record(self, phase: int, named: int) -> Mark | None:
        """A mark here and now, with one holder; None if all are in flight."""
        if self._free:
            mark = self._free.pop()
        elif self._made < POOL:
            self._made += 1
            mark = Mark(self._make())
        else:
            return None
        mark.phase, mark.named, mark.holders = phase, named, 1
        mark.at = clock()
        mark.event.record(self._stream())
        return mark

    def let_go(self, mark: Mark) -> None:
        mark.holders -= 1
        if not mark.holders:
            self._free.append(mark)


def elapsed_ns(begin: Mark, end: Mark) -> int:
    """The device's time between two marks it has reached."""
    return max(0, int(begin.event.elapsed_time(end.event) * 1e6))

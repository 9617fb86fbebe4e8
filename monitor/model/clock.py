"""Time, read once per tick and passed on: no collector reads a clock itself."""

from __future__ import annotations

import time
from functools import cache
from typing import NamedTuple

JUMP_SECONDS = 5.0
"""A wall clock that moves this much more or less than time passes was set; NTP slews far less per tick."""
SETTLE_SECONDS = 3600.0
"""A clock that was set is trusted again once it has been left alone for this long."""


class Moment(NamedTuple):
    """One instant on both clocks: wall time is for people, monotonic for arithmetic."""

    wall: float
    monotonic: float
    slept: float = 0.0
    """Seconds the machine has been suspended since boot: monotonic time leaves them out."""

    @classmethod
    def now(cls) -> Moment:
        return cls(time.time(), time.monotonic(), _slept())

    @property
    def elapsed(self) -> float:
        """Seconds since boot, asleep or not."""
        return self.monotonic + self.slept


def _slept() -> float:
    """0.0 where the system does not say."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    awake = time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - awake


class WallWatch:
    """Notices when somebody sets the wall clock. Ask `is_settled` before deleting anything by age: a clock
    that is wrong for a minute must not cost a month of history."""

    def __init__(self) -> None:
        self._offset: float | None = None
        """The wall clock minus the time since boot, which nobody can set."""
        self._unsettled_until = float("-inf")

    def see(self, now: Moment) -> float:
        """Called once a tick: the seconds by which the wall clock was set since the last call, else 0.0."""
        last, self._offset = self._offset, now.wall - now.elapsed
        jump = 0.0 if last is None else self._offset - last
        if abs(jump) < JUMP_SECONDS:
            return 0.0
        self.doubt(now)
        return jump

    def doubt(self, now: Moment) -> None:
        """Treat the clock as possibly wrong, for a reason other than a jump."""
        self._unsettled_until = now.elapsed + SETTLE_SECONDS

    def is_settled(self, now: Moment) -> bool:
        """Whether nobody has set the clock lately."""
        return now.elapsed >= self._unsettled_until

    def state(self) -> WatchState:
        return WatchState(boot_id(), self._offset, max(0.0, self._unsettled_until))

    def restore(self, state: WatchState) -> bool:
        """Continue where another process left off. False: the machine has rebooted since, so nothing is
        known."""
        if not state.boot or state.boot != boot_id():
            return False
        self._offset, self._unsettled_until = state.offset, state.unsettled_until
        return True


class WatchState(NamedTuple):
    """What one process knows about the wall clock, for the next one on the same boot."""

    boot: str
    offset: float | None
    unsettled_until: float


@cache
def boot_id() -> str:
    """Different after every boot; empty where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""

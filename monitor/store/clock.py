"""What the history knows about the machine's clock: whether it can be trusted for expiring old data.

Kept in the database, so that a daemon started while the clock is wrong knows that it was set.
"""

from __future__ import annotations

import logging
import sqlite3

import msgspec

from monitor.model.clock import Moment, WallWatch, WatchState
from monitor.store.corrupt import readable

log = logging.getLogger("gpumon.store")

LEAP_SECONDS = 86400.0
"""After this long without a daemon, plus a reboot, the clock is not trusted right away."""


class StoreClock:
    def __init__(self) -> None:
        self._watch = WallWatch()

    def restore(self, database: sqlite3.Connection) -> None:
        """Called when the database is opened."""
        now = Moment.now()
        rows = database.execute("SELECT boot, clock_offset, unsettled_until FROM clock")
        states = list(readable(rows, lambda row: msgspec.convert(row, WatchState)))
        known = bool(states) and self._watch.restore(states[0])
        if not known and now.wall - _newest(database, now) > LEAP_SECONDS:
            self._watch.doubt(now)

    def may_expire(self) -> bool:
        """Called once a tick: False if the clock was set recently."""
        now = Moment.now()
        if self._watch.see(now):
            log.warning("the clock was set: nothing expires until it has been left alone for an hour")
        return self._watch.is_settled(now)

    def keep(self, database: sqlite3.Connection) -> None:
        database.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?, ?)", self._watch.state())


def _newest(database: sqlite3.Connection, now: Moment) -> float:
    """When something was last written here; now, if nothing ever was."""
    (ring,) = database.execute("SELECT max(updated_us) FROM rings").fetchone()
    (run,) = database.execute("SELECT max(updated_us) FROM runs").fetchone()
    times = [time_us / 1e6 for time_us in (ring, run) if isinstance(time_us, int)]
    return max(times, default=now.wall)

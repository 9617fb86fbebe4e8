"""How long another thread was on a core, and how long it queued for one. The rest is waiting for something
outside: on a busy machine, that is not the same as not running."""

from __future__ import annotations

import os
import threading
import time


class ThreadClock:
    """(ns on a core, ns in the run queue) of a thread so far. Where the system does not tell, the first is
    wall time.

    The kernel's file has both, but of a thread that runs it tells the first as of the last timer tick, up to
    10 ms ago. Asking the thread's clock brings the file up to date as well."""

    def __init__(self, thread: int) -> None:
        self._clock = _cpu_clock(thread)
        self.fd = _schedstat(thread)
        """The kernel's file about the thread; negative if there is none."""

    def read(self) -> tuple[int, int]:
        try:
            running = None if self._clock is None else time.clock_gettime_ns(self._clock)
            until_tick, queued = os.pread(self.fd, 64, 0).split()[:2] if self.fd >= 0 else (None, 0)
        except OSError:  # the thread has ended
            self.close()
            running, until_tick, queued = None, None, 0
        if running is None:
            running = time.monotonic_ns() if until_tick is None else int(until_tick)
        return running, int(queued)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _schedstat(thread: int) -> int:
    """Linux: a small file that stays open; one read per sample."""
    native = next((one.native_id for one in threading.enumerate() if one.ident == thread), None)
    try:
        fd = os.open(f"/proc/self/task/{native}/schedstat", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return -1
    if len(os.pread(fd, 64, 0).split()) >= 2:
        return fd
    os.close(fd)
    return -1


def _cpu_clock(thread: int) -> int | None:
    if not hasattr(time, "pthread_getcpuclockid"):
        return None
    try:
        clock = time.pthread_getcpuclockid(thread)
        time.clock_gettime_ns(clock)
    except OSError:
        return None
    return clock

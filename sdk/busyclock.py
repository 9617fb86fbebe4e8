"""How long another thread was on a core, and how long it queued for one. The rest is waiting for
something outside: on a busy machine that is not the same as not running."""

from __future__ import annotations

import os
import threading
import time


class BusyClock:
    """(ns on a core, ns in the run queue) of a thread so far; the first always grows where nobody tells."""

    def __init__(self, thread: int) -> None:
        self._fd = _schedstat(thread)
        self._clock = _cpu_clock(thread) if self._fd is None else None

    def read(self) -> tuple[int, int]:
        if self._fd is not None:
            try:
                running, queued = os.pread(self._fd, 64, 0).split()[:2]
                return int(running), int(queued)
            except (OSError, ValueError):
                self.close()  # the thread has ended
        if self._clock is not None:
            return time.clock_gettime_ns(self._clock), 0
        return time.monotonic_ns(), 0

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _schedstat(thread: int) -> int | None:
    """Linux: a small file that stays open, one read a look."""
    native = next((one.native_id for one in threading.enumerate() if one.ident == thread), None)
    try:
        fd = os.open(f"/proc/self/task/{native}/schedstat", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    if len(os.pread(fd, 64, 0).split()) >= 2:
        return fd
    os.close(fd)
    return None


def _cpu_clock(thread: int) -> int | None:
    if not hasattr(time, "pthread_getcpuclockid"):
        return None
    try:
        clock = time.pthread_getcpuclockid(thread)
        time.clock_gettime_ns(clock)
    except OSError:
        return None
    return clock

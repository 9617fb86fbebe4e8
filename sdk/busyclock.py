"""How long another thread has worked, as opposed to waited for something outside."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable


def busy_clock(thread: int) -> Callable[[], int]:
    """ns the thread was on a core or queued for one (a busy machine is not the thread's waiting)."""
    return _schedstat(thread) or _cpu_time(thread) or time.monotonic_ns


class _Schedstat:
    """Linux: time on a core and time in the run queue, one small read without an open."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        self()

    def __call__(self) -> int:
        running, queued = os.pread(self._fd, 64, 0).split()[:2]
        return int(running) + int(queued)


def _schedstat(thread: int) -> Callable[[], int] | None:
    native = next((one.native_id for one in threading.enumerate() if one.ident == thread), None)
    try:
        return _Schedstat(f"/proc/self/task/{native}/schedstat")
    except (OSError, ValueError):
        return None


def _cpu_time(thread: int) -> Callable[[], int] | None:
    if not hasattr(time, "pthread_getcpuclockid"):
        return None
    try:
        clock = time.pthread_getcpuclockid(thread)
        time.clock_gettime_ns(clock)
    except OSError:
        return None
    return lambda: time.clock_gettime_ns(clock)

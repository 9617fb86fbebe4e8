"""Limits of the daemon's own process."""

from __future__ import annotations

import ctypes
import logging
import sys

log = logging.getLogger("gpumon.host")


def raise_descriptor_limit() -> int | None:
    """Let this process open as many files as allowed: every ring in view is an open file, and the usual soft
    limit of 1,024 is meant for programs that use select(). Returns the limit now in force; None: unknown.

    For the daemon only: a command's children would inherit it."""
    try:
        import resource
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        log.warning("at most %d open files: the limit cannot be raised to %d (%s)", soft, hard, error)
        return soft
    if soft != hard:
        log.info("open-file limit is now %d (was %d)", hard, soft)
    return hard


MALLOC_MMAP_THRESHOLD, MALLOC_ARENA_MAX = -3, -8
"""Parameters of glibc's `mallopt`."""
LARGE_BYTES = 128 << 10
ARENAS = 2


def steady_memory() -> bool:
    """Have large blocks given back as soon as they are freed, and let threads share the allocator's pools.
    A snapshot for the page is a megabyte made and freed every second: left to itself glibc learns to keep
    such blocks in its heap, which then has holes and grows. False: another allocator.

    For the daemon only: commands end before it matters."""
    allocator = ctypes.CDLL(None) if sys.platform == "linux" else None
    tune = getattr(allocator, "mallopt", None)
    if tune is None:
        return False
    return bool(tune(MALLOC_MMAP_THRESHOLD, LARGE_BYTES) and tune(MALLOC_ARENA_MAX, ARENAS))

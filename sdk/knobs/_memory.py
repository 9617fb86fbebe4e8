"""The memory of this process and its loader workers, from the kernel's own files."""

from __future__ import annotations

import os
import resource


def peak_bytes() -> int:
    """The most this process has had, and what its children have now that is not shared with it."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return own + sum(_own_bytes(child) for child in _children())


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _own_bytes(pid: int) -> int:
    """Pages of its own; those it shares with us are counted already."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            sizes = [line.split()[1] for line in file if line.startswith("Private_")]
    except OSError:
        return 0
    return 1024 * sum(int(size) for size in sizes)

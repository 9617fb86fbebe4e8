"""What is read at most once a second, after a step: memory, allocator, dynamo."""

from __future__ import annotations

import os
import sys

from ..compiler.counters import dynamo_counters
from ._config import read

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TREE_EVERY = 5
"""Chosen: seconds between readings of the child processes' memory."""
_CUDA = {
    "allocated_bytes": "allocated_bytes.all.current",
    "reserved_bytes": "reserved_bytes.all.current",
    "max_allocated_bytes": "allocated_bytes.all.peak",
    "alloc_retries": "num_alloc_retries",
    "ooms": "num_ooms",
}


class Housekeeping:
    """Scalars of the process. Calls nothing in torch that would initialize anything."""

    def __init__(self) -> None:
        self._turn = 0

    def scalars(self) -> dict[str, float]:
        self._turn += 1
        found: dict[str, float] = {}
        rss = read(lambda: _rss("self"))
        if rss:
            found["proc.rss_bytes"] = rss
            if self._turn % _TREE_EVERY == 1:
                found["proc.tree_rss_bytes"] = rss + sum(map(_rss_or_0, _children()))
        return found | cuda_memory() | dynamo_counters()


def _rss(pid: str) -> float:
    with open(f"/proc/{pid}/statm", "rb") as file:
        return float(int(file.read().split()[1]) * _PAGE)


def _rss_or_0(pid: str) -> float:
    return read(lambda: _rss(pid)) or 0.0


def _children() -> list[str]:
    """Pids of descendants, two levels deep: workers and what they started."""
    direct = _children_of("self")
    return direct + [pid for parent in direct for pid in _children_of(parent)]


def _children_of(pid: str) -> list[str]:
    found: list[str] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += file.read().split()
    except OSError:
        return found
    return found


def cuda_memory() -> dict[str, float]:
    """The caching allocator's counters; empty unless this process already uses CUDA."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return {}
    stats = read(lambda: cuda.memory_stats_as_nested_dict() and cuda.memory_stats())
    if not stats:
        return {}
    return {f"cuda.{name}": float(stats[key]) for name, key in _CUDA.items() if key in stats}

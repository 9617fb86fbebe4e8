"""What is read at most once a second, behind a step: memory, allocator, dynamo, garbage collection."""

from __future__ import annotations

import os
import sys
from typing import Any

from .probe import read, take

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TREE_EVERY = 5
_CUDA = {
    "allocated_bytes": "allocated_bytes.all.current",
    "reserved_bytes": "reserved_bytes.all.current",
    "max_allocated_bytes": "allocated_bytes.all.peak",
    "alloc_retries": "num_alloc_retries",
    "ooms": "num_ooms",
}


class Housekeeping:
    """Scalars of the process. Asks nothing of torch that would start something."""

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
    """Pids below this process, two levels deep: workers, and what they started."""
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
    """The caching allocator's counters; empty unless this process uses CUDA already."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return {}
    stats = read(lambda: cuda.memory_stats_as_nested_dict() and cuda.memory_stats())
    if not stats:
        return {}
    return {f"cuda.{name}": float(stats[key]) for name, key in _CUDA.items() if key in stats}


def compiled_frames() -> int:
    """How many frames dynamo has compiled so far; 0 when it was never used."""
    utils = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["frames"].get("ok", 0)) if utils is not None else 0


def dynamo_counters() -> dict[str, float]:
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None or not utils.counters["frames"].get("total"):
        return {}
    counters = take(
        {
            "dynamo.graphs": lambda: float(utils.counters["stats"].get("unique_graphs", 0)),
            "dynamo.graph_breaks": lambda: float(sum(utils.counters["graph_break"].values())),
            "dynamo.recompiles": lambda: float(_recompiles()),
        }
    )
    return dict(counters)


def _recompiles() -> int:
    frames: Any = sys.modules["torch._dynamo.convert_frame"].FRAME_COMPILE_COUNTER
    return sum(count - 1 for count in frames.values() if count > 1)


def compile_config(scalars: dict[str, float]) -> dict[str, Any] | None:
    """The probe's `compile` part, from the counters."""
    if not scalars:
        return None
    utils = sys.modules.get("torch._dynamo.utils")
    frames = utils.counters["frames"] if utils is not None else {}
    return {
        "used": True,
        "graphs": int(scalars.get("dynamo.graphs", 0)),
        "graph_breaks": int(scalars.get("dynamo.graph_breaks", 0)),
        "recompiles": int(scalars.get("dynamo.recompiles", 0)),
        "failed": int(frames.get("total", 0)) - int(frames.get("ok", 0)),
    }

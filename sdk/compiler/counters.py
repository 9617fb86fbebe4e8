"""What torch.compile has done so far, from its own counters; never imports it."""

from __future__ import annotations

import sys
from typing import Any


def graph_counts() -> dict[str, int] | None:
    """Dynamo's own counts (a Counter; `unique_graphs`: compiled so far); None while it is not loaded."""
    utils = sys.modules.get("torch._dynamo.utils")
    found: dict[str, int] | None = None if utils is None else utils.counters["stats"]
    return found


def in_use() -> bool:
    """Whether anything was compiled; torch may import dynamo on its own, so that alone says nothing."""
    utils = sys.modules.get("torch._dynamo.utils")
    return utils is not None and bool(utils.counters["frames"] or utils.counters["stats"])


def dynamo_counters() -> dict[str, float]:
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None or not in_use():
        return {}
    return {
        "dynamo.graphs": float(utils.counters["stats"].get("unique_graphs", 0)),
        "dynamo.graph_breaks": float(sum(utils.counters["graph_break"].values())),
        "dynamo.recompiles": float(_recompiles()),
    }


def _recompiles() -> int:
    frames: Any = getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COMPILE_COUNTER", {})
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

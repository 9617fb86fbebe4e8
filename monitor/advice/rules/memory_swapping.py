"""The machine swaps while it trains.

Looks at: swap traffic and memory pressure of the host.
Why: A page fetched from swap costs milliseconds; a loader or an optimizer that touches swapped pages
    slows everything down.
Remedy: fewer workers, smaller caches and prefetch, or more memory.
Gain: unknown, often large.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, size
from monitor.advice.rule import Advice, rule


@rule("memory.swapping", steps=False)
def check(run: RunContext) -> Advice | None:
    memory = run.snapshot.host.memory
    if not run.live or memory is None or memory.swap_in_bytes_per_second is None:
        return None
    traffic = memory.swap_in_bytes_per_second + (memory.swap_out_bytes_per_second or 0.0)
    used = 1.0 - memory.available_bytes / memory.total_bytes if memory.total_bytes else 0.0
    if traffic < run.policy.swap_bytes_per_second or used < 0.7:
        return None
    workers = run.workers
    return Advice(
        title=f"Swapping: {size(traffic)}/s in and out of swap, memory {percent(used)} used",
        remedy="Make the run fit into memory: "
        + (f"num_workers {workers} → {max(1, workers // 2)}, " if workers else "")
        + "smaller prefetch and caches, memory-mapped data.",
        change=f"- num_workers={workers}\n+ num_workers={max(1, workers // 2)}" if workers else "",
        evidence={
            "swap_bytes_per_second": traffic,
            "swap_used_bytes": memory.swap_used_bytes,
            "memory_used_ratio": used,
            "num_workers": workers,
        },
        severity="warning",
    )

"""The machine swaps while it trains.

Looks at: swap traffic and memory pressure of the host.
Why: A page fetched from swap costs milliseconds; a loader or an optimizer that touches swapped pages
    slows everything down.
Remedy: fewer workers, smaller caches and prefetch, or more memory.
Gain: unknown, often large.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.rule import Advice, rule
from monitor.model import units


@rule("memory.swapping", "Swapping", steps=False)
def check(run: RunContext) -> Advice | None:
    memory = run.snapshot.host.memory
    if not run.live or memory is None or memory.swap_in_bytes_per_second is None:
        return None
    traffic = memory.swap_in_bytes_per_second + (memory.swap_out_bytes_per_second or 0.0)
    used = 1.0 - memory.available_bytes / memory.total_bytes if memory.total_bytes else 0.0
    if traffic < run.policy.swap_bytes_per_second or used < run.policy.swap_memory_used:
        return None
    workers = run.workers
    return Advice(
        title=f"Swapping: {units.rate(traffic)} in and out of swap, memory {units.percent(used)} used",
        remedy="Make the run fit into memory: "
        + (f"num_workers {workers} → {max(1, workers // 2)}, " if workers else "")
        + "smaller prefetch and caches, memory-mapped data.",
        change=edits.keywords(run, "loader", num_workers=str(max(1, workers // 2))) if workers else "",
        effect="identical",
        evidence={
            "swap_bytes_per_second": traffic,
            "swap_used_bytes": memory.swap_used_bytes,
            "memory_used_ratio": used,
            "num_workers": workers,
        },
        severity="warning",
    )

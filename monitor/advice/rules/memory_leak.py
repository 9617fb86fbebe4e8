"""Memory grows with every step.

Looks at: resident memory of the run's processes (or allocated device memory) over the steps.
Why: Growth that does not level off ends in swapping or an out-of-memory kill, often hours later; on the
    way it slows allocation and copying.
Remedy: do not keep tensors that carry a graph (`loss` instead of `loss.item()`), bound caches, use
    arrays instead of lists of Python objects in workers.
Gain: none predicted: this is about the run surviving.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Caller
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.evidence.memory_growth import device_growth, host_growth
from monitor.advice.rule import Advice, rule
from monitor.model import units


@rule(
    "memory.leak",
    "Memory leak",
    steps=False,
    suppresses=("compute.small_batch", "job.gc_pauses"),
    bonus=0.6,
)
def check(run: RunContext) -> Advice | None:
    on_device = device_growth(run)
    growth = on_device or host_growth(run)
    if growth is None:
        return None
    where = "device memory" if on_device else "memory of the training process"
    room = _room(run, bool(on_device))
    left = (
        f", full in about {units.whole(room / growth.per_step)} steps" if room and growth.per_step > 0 else ""
    )
    keeper = hot_lines.keeping_line(run)
    return Advice(
        title=f"Memory leak: {where} grew by {units.size(growth.bytes)} in {units.whole(growth.steps)} steps "
        f"({units.size(growth.per_step)} a step){left}",
        remedy=_remedy(keeper),
        effect="identical",
        evidence={
            "grown_bytes": growth.bytes,
            "bytes_per_step": growth.per_step,
            "steps": growth.steps,
            "device": bool(on_device),
            "room_bytes": room,
            "kept_at": keeper.place if keeper else None,
            "kept_code": keeper.code if keeper else None,
        },
        severity="warning",
    )


def _remedy(keeper: Caller | None) -> str:
    kept = "Something keeps tensors or objects of every step"
    if keeper is not None:
        kept = f"`{keeper.code}` ({keeper.place}) keeps something of every step"
    return (
        f"{kept}: keep `loss.item()` or `.detach()` instead of the loss (a kept loss keeps its whole graph), "
        "bound caches and lists."
    )


def _room(run: RunContext, device: bool) -> float | None:
    """Bytes left before it is full."""
    if device:
        for gpu in run.gpus:
            if gpu.memory_total_bytes is not None and gpu.memory_used_bytes is not None:
                return float(gpu.memory_total_bytes - gpu.memory_used_bytes)
        return None
    memory = run.snapshot.host.memory
    return float(memory.available_bytes) if memory else None

"""The GPU's memory is nearly full.

Looks at: device memory in use on GPUs that train.
Why: Near the limit one longer batch, a fragmented allocator or a neighbour's process ends the run with an
    out-of-memory error.
Remedy: a smaller batch, mixed precision, checkpointing of the largest blocks, `expandable_segments`.
Gain: none: this is about safety.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule
from monitor.model import units

CACHED = 0.8
"""If the allocator's peak is below this share of the memory in use, the rest is cache that it can release."""
SMALLER = 3 / 4
"""The suggested batch, relative to the current one."""


@rule("memory.device_full", "Memory nearly full", steps=False)
def check(run: RunContext) -> Advice | None:
    for gpu in run.gpus:
        if not run.live or gpu.memory_used_bytes is None or not gpu.memory_total_bytes:
            continue
        use = gpu.memory_used_bytes / gpu.memory_total_bytes
        allocated = run.scalar("cuda.max_allocated_bytes")
        cached = allocated is not None and allocated < CACHED * gpu.memory_used_bytes
        if use < run.policy.memory_high or (cached and use < run.policy.memory_full):
            continue
        batch = run.batch_size
        smaller = f"batch_size {batch} → {max(1, int(SMALLER * batch))}, " if batch else ""
        return Advice(
            title=f"GPU {gpu.index} memory {units.percent(use)} full: {units.size(gpu.memory_used_bytes)} of "
            f"{units.size(gpu.memory_total_bytes)} (target below {units.percent(run.policy.memory_high)})",
            remedy=f"Make room before it runs out: {smaller}autocast, or checkpoint the largest blocks.",
            change="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            effect="identical",
            evidence={
                "memory_used_ratio": use,
                "memory_used_bytes": gpu.memory_used_bytes,
                "memory_total_bytes": gpu.memory_total_bytes,
                "max_allocated_bytes": allocated,
            },
            severity="critical" if use >= run.policy.memory_full else "warning",
            gpu=gpu.uuid,
        )
    return None

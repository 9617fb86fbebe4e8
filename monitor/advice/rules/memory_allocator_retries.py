"""The CUDA allocator has to free and retry: memory is fragmented or too tight.

Looks at: the allocator's retry and out-of-memory counters, reserved compared with allocated bytes.
Why: Each retry frees the whole cache and synchronises the device; steps that hit one take many times as
    long.
Remedy: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, a slightly smaller batch, fixed shapes.
Gain: small and uncertain: the steps that hit a retry.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule
from monitor.model import units


@rule("memory.allocator_retries", "Allocator retries", steps=False)
def check(run: RunContext) -> Advice | None:
    retries, ooms = run.scalar("cuda.alloc_retries"), run.scalar("cuda.ooms")
    allocated, reserved = run.scalar("cuda.allocated_bytes"), run.scalar("cuda.reserved_bytes")
    if not (retries or ooms):
        return None
    unused = reserved - allocated if reserved and allocated else None
    words = f", {units.size(unused)} reserved but not in use" if unused else ""
    return Advice(
        title=f"CUDA allocator retried {units.whole(retries or 0)} times, ran out {units.whole(ooms or 0)} "
        f"times{words}",
        remedy="Let segments grow (expandable_segments:True) and keep shapes fixed; a slightly smaller "
        "batch if it stays.",
        change="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
        evidence={
            "alloc_retries": retries,
            "ooms": ooms,
            "reserved_bytes": reserved,
            "allocated_bytes": allocated,
        },
        severity="warning",
    )

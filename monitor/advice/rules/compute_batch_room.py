"""The batch is small for the GPU: memory is free and the GPU is not busy.

Looks at: device memory in use, batch size, GPU utilization, bytes per sample from measured allocations.
Why: A GPU works best on large batches; with most of its memory free and its cores idle, the step carries
    too few samples.
Remedy: raise the batch until memory is about 75 % used: bytes per sample are measured, not guessed.
Gain: t(B) = a + bB with the starved and fixed part as a.
"""

from __future__ import annotations

from monitor.advice.computing import suggested_batch
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, size
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule("compute.batch_room", suppresses=("memory.batch_suggestion",))
def check(run: RunContext) -> Advice | None:
    gpu = run.gpus[0] if run.gpus else None
    batch, suggested = run.batch_size, suggested_batch(run)
    if gpu is None or batch is None or suggested is None or run.period is None:
        return None
    use = gpu.utilization_ratio
    if use is None or use >= run.policy.gpu_busy_low or suggested < 2 * batch or run.share("data") > 0.3:
        return None
    idle = (1.0 - use) * run.period
    saved = idle * (1.0 - batch / suggested)
    used, total = gpu.memory_used_bytes or 0, gpu.memory_total_bytes or 1
    return Advice(
        title=f"Batch of {batch} is small for this GPU: {percent(used / total)} of its memory used, "
        f"{percent(use)} busy",
        remedy=f"Raise batch_size from {batch} to {suggested} (about 75 % of {size(total)}), learning rate "
        "with it.",
        change=f"- batch_size={batch}\n+ batch_size={suggested}",
        evidence={
            "batch_size": batch,
            "suggested_batch_size": suggested,
            "memory_used_ratio": used / total,
            "gpu_utilization_ratio": use,
        },
        what=Change(savings=(Saving("*", 0.6 * saved, "launch"),)),
        low=Change(savings=(Saving("*", 0.2 * saved, "launch"),)),
        high=Change(savings=(Saving("*", saved, "launch"),)),
        because=f"{percent(1 - use)} of the step the GPU is idle and no data is waited for",
    )

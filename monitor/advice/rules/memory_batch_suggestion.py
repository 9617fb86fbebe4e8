"""How large the batch could be, from measured bytes per sample.

Looks at: peak allocated bytes, model and optimizer size, device memory.
Why: The batch that fits is known once the bytes per sample are: mem = m0 + m1·B.
Remedy: the suggested batch size, at 75 % of the memory.
Gain: none by itself; see the rules about small batches.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.evidence.compute_cost import TARGET_MEMORY, suggested_batch
from monitor.advice.rule import Advice, rule
from monitor.model import units


@rule("memory.batch_suggestion", "Room for a larger batch", settings=("loader.batch_size",))
def check(run: RunContext) -> Advice | None:
    gpu, batch, suggested = (run.gpus[0] if run.gpus else None), run.batch_size, suggested_batch(run)
    if gpu is None or batch is None or suggested is None or suggested < 2 * batch:
        return None
    if not gpu.memory_used_bytes or not gpu.memory_total_bytes:
        return None
    used = gpu.memory_used_bytes / gpu.memory_total_bytes
    return Advice(
        title=f"Room for a larger batch: {units.percent(used)} of GPU memory used with batch_size={batch}",
        remedy=f"From the measured bytes a sample, batch_size={suggested} fills about "
        f"{units.percent(TARGET_MEMORY)} of the memory.",
        change=edits.keywords(run, "loader", batch_size=str(suggested)),
        effect="changes_training",
        price="device memory; the learning rate may have to follow the batch",
        evidence={"batch_size": batch, "suggested_batch_size": suggested, "memory_used_ratio": used},
        severity="hint",
    )

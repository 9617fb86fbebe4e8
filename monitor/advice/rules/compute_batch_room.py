"""The batch is small for the GPU: memory is free and the GPU is not busy.

Looks at: device memory in use, batch size, the device's gaps during the passes (if it was not timed, GPU
    utilization), bytes per sample from measured allocations.
Why: A GPU works best on large batches; with most of its memory free and its cores idle, the step carries
    too few samples.
Remedy: raise the batch until memory is about 75 % used: bytes per sample are measured, not guessed.
Gain: t(B) = a + bB with the starved and fixed part as a.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.evidence.compute_cost import TARGET_MEMORY, suggested_batch
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, saved
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.2, likely=0.6, high=1.0)
"""Share of the idle time that is saved. Judgement; never checked on a GPU here."""
GROWN = Bounds(low=0.3, likely=0.7, high=1.0)
"""Share of the larger batch that comes without longer launches, if the device was timed. Judgement."""
PASSES = ("forward", "backward", "optimizer", "zero_grad")
"""Where a larger batch keeps the device busy. Gaps elsewhere (a checkpoint, the author's own code, an
environment) have their own cause."""


@rule(
    "compute.batch_room",
    "Small batch for the GPU",
    settings=("loader.batch_size",),
    suppresses=("memory.batch_suggestion",),
)
def check(run: RunContext) -> Advice | None:
    gpu = run.gpus[0] if run.gpus else None
    batch, suggested = run.batch_size, suggested_batch(run)
    if gpu is None or batch is None or suggested is None or run.period is None:
        return None
    timed = run.device.busy_ratio if run.device is not None else None
    busy = gpu.utilization_ratio if timed is None else timed
    use = _use(run, busy)
    if use is None or busy is None or use >= run.policy.gpu_busy_low or suggested < 2 * batch:
        return None
    if run.share("data") > run.policy.batch_wait_share:
        return None
    idle = (1.0 - use) * run.period
    gone = idle * (1.0 - batch / suggested)
    used, total = gpu.memory_used_bytes or 0, gpu.memory_total_bytes or 1
    return Advice(
        title=f"Batch of {batch} is small for this GPU: {units.percent(used / total)} of its memory used, "
        f"{units.percent(busy)} busy",
        remedy=f"Raise batch_size from {batch} to {suggested} "
        f"(about {units.percent(TARGET_MEMORY)} of {units.size(total)}), and the learning rate with it.",
        change=edits.keywords(run, "loader", batch_size=str(suggested)),
        knobs={"loader.batch_size": str(suggested)},
        effect="changes_training",
        price="device memory; the learning rate may have to follow the batch",
        evidence={
            "batch_size": batch,
            "suggested_batch_size": suggested,
            "memory_used_ratio": used / total,
            "gpu_utilization_ratio": busy,
        },
        gain=GROWN.part_of(Change(batch=suggested / batch))
        if run.lanes is not None
        else SAVED.part_of(saved("*", gone, "launch")),
        because=f"{units.percent(1 - use)} of the step the GPU is idle and no data is waited for",
    )


def _use(run: RunContext, busy: float | None) -> float | None:
    """How busy the GPU would be if it had no gaps but those in the passes."""
    if run.lanes is None or run.lanes.period <= 0:
        return busy
    return 1.0 - sum(run.lanes.idle.get(phase, 0.0) for phase in PASSES) / run.lanes.period

"""Only some of the GPUs the job may use are used.

Looks at: visible GPUs compared with those that have a rank on them.
Why: GPUs that are allocated but not used cost as much as used ones.
Remedy: `torchrun --nproc-per-node`, or ask for fewer.
Gain: up to the number of GPUs, minus the cost of communication.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import speedup
from monitor.advice.rule import Advice, rule

SCALING = 0.8
"""Share of the added GPUs that turns into speed. Judgement: communication costs the rest."""


@rule("job.partial_gpus", "Unused GPUs")
def check(run: RunContext) -> Advice | None:
    visible, used = set(run.run.visible_gpu_uuids), set(run.run.gpu_uuids)
    idle = [gpu for gpu in run.snapshot.gpus if gpu.uuid in visible - used and not gpu.processes]
    asked = run.setting("visible_devices") or run.setting("env", "CUDA_VISIBLE_DEVICES")
    if not run.live or not used or not idle or not asked:
        return None
    count = len(visible)
    factor = count / len(used)
    return Advice(
        title=f"{len(used)} of {count} visible GPUs used; GPU {', '.join(str(gpu.index) for gpu in idle)} "
        "does nothing",
        remedy=f"Start one process per GPU (torchrun --nproc-per-node={count} …) with "
        f"DistributedDataParallel, or ask for {len(used)}.",
        change=f"torchrun --nproc-per-node={count} {run.run.script or 'train.py'}",
        evidence={"visible": count, "used": len(used), "idle": [gpu.uuid for gpu in idle]},
        speedup=speedup(1.0, 1.0 + SCALING * (factor - 1.0), factor, "data parallel over all of them"),
        share=1.0 - 1.0 / factor,
        severity="warning",
    )

"""Only some of the GPUs the job may use are used.

Looks at: visible GPUs against those with a rank on them.
Why: GPUs that were allocated and are not used cost the same as used ones.
Remedy: `torchrun --nproc-per-node`, or ask for fewer.
Gain: up to the number of GPUs, less what communication costs.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.rule import Advice, rule
from monitor.snapshot import Speedup


@rule("job.partial_gpus")
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
        "DistributedDataParallel, or "
        f"ask for {len(used)}.",
        change=f"- python {run.run.script or 'train.py'}\n+ torchrun --nproc-per-node={count} "
        f"{run.run.script or 'train.py'}",
        evidence={"visible": count, "used": len(used), "idle": [gpu.uuid for gpu in idle]},
        speedup=Speedup(
            1.0, round(1 + 0.8 * (factor - 1), 2), round(factor, 2), "data parallel over all of them"
        ),
        severity="warning",
    )

"""Another job uses the same GPU.

Looks at: processes on the GPU that do not belong to the run, their memory and SM share.
Why: Two jobs on one GPU take turns: each sees longer steps, and one's peak memory can end the other.
Remedy: another GPU (CUDA_VISIBLE_DEVICES), or move the other job.
Gain: the SM share the others take, at most.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, size
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change


@rule("device.shared", steps=False)
def check(run: RunContext) -> Advice | None:
    own = (
        set(run.run.pids) | {process.pid for process in run.processes} | {rank.pid for rank in run.run.ranks}
    )
    for gpu in run.gpus:
        others = [
            process for process in gpu.processes if process.pid not in own and process.kind != "graphics"
        ]
        taken = sum(process.memory_bytes or 0 for process in others)
        busy = sum(process.sm_ratio or 0.0 for process in others)
        if not run.live or not others or (taken < 256 << 20 and busy < 0.05):
            continue
        use = f", {percent(busy)} of its SMs" if busy else ""
        pids = ", ".join(str(process.pid) for process in others[:4])
        return Advice(
            title=f"GPU {gpu.index} is shared: {len(others)} other process{'es'[: 2 * (len(others) > 1)]} "
            f"({pids}) "
            f"hold {size(taken)}{use}",
            remedy="Give the run a GPU of its own, or move the other job.",
            change=f"CUDA_VISIBLE_DEVICES={_free(run) or '<free GPU>'} "
            f"{run.run.command or 'python train.py'}",
            evidence={
                "other_pids": [process.pid for process in others],
                "other_bytes": taken,
                "other_sm_ratio": busy,
            },
            what=Change(everything=1.0 - 0.6 * min(0.9, busy)) if run.reliable else None,
            because="the SM share the others take",
            severity="warning",
            gpu=gpu.uuid,
        )
    return None


def _free(run: RunContext) -> str | None:
    """Index of a GPU nobody is on."""
    return next(
        (str(gpu.index) for gpu in run.snapshot.gpus if not gpu.processes and gpu.state == "ok"), None
    )

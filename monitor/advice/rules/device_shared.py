"""Another job uses the same GPU.

Looks at: processes on the GPU that do not belong to the run, their memory and SM share.
Why: Two jobs on one GPU take turns: each sees longer steps, and one's peak memory can end the other.
Remedy: another GPU (CUDA_VISIBLE_DEVICES), or move the other job.
Gain: the SM share the others take, at most.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Outcomes
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

TAKEN, MOST_BUSY = 0.6, 0.9
"""Share of the others' SM time that comes back, and the cap on their SM share. Judgement; never checked
here."""


@rule("device.shared", "Shared GPU", steps=False)
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
        if not run.live or not others or _negligible(run, taken, busy):
            continue
        use = f", {units.percent(busy)} of its SMs" if busy else ""
        pids = ", ".join(str(process.pid) for process in others[:4])
        return Advice(
            title=f"GPU {gpu.index} is shared: {len(others)} other process{'es'[: 2 * (len(others) > 1)]} "
            f"({pids}) hold {units.size(taken)}{use}",
            remedy="Give the run a GPU of its own, or move the other job.",
            change=f"CUDA_VISIBLE_DEVICES={_free(run) or '<free GPU>'} "
            f"{run.run.command or 'python train.py'}",
            evidence={
                "other_pids": [process.pid for process in others],
                "other_bytes": taken,
                "other_sm_ratio": busy,
            },
            gain=Outcomes(Change(everything=1.0 - TAKEN * min(MOST_BUSY, busy))) if run.reliable else None,
            because="the SM share the others take",
            severity="warning",
            gpu=gpu.uuid,
        )
    return None


def _negligible(run: RunContext, taken: int, busy: float) -> bool:
    return taken < run.policy.shared_bytes and busy < run.policy.shared_sm


def _free(run: RunContext) -> str | None:
    """Index of a GPU nobody is on."""
    return next(
        (str(gpu.index) for gpu in run.snapshot.gpus if not gpu.processes and gpu.state == "ok"), None
    )

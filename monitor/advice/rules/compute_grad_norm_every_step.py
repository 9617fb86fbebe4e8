"""Gradient norms are computed in every step at a noticeable cost.

Looks at: work in the loop that reads gradients and whose result no step needs; time in `clip_grad_norm_`.
Why: A Python loop over the parameters with a norm (and `.item()`) each costs several calls per parameter;
    clipping is part of the update and stays, but can handle all parameters in a few calls.
Remedy: record the norm that `clip_grad_norm_` returns, or one fused norm now and then; clip with
    `foreach=True`.
Gain: all but a tenth of the recording, part of the clipping.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits, hot_lines
from monitor.advice.evidence.side_jobs import SideJob, side_job
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import saved
from monitor.advice.rule import Advice, rule
from monitor.model import units

RECORD_SAVED = Bounds(low=0.54, likely=0.9, high=1.0)
"""Share of the user's own loop that is saved. Judgement."""
CLIPPING_SAVED = Bounds(low=0.36, likely=0.6, high=1.0)
"""Share of `clip_grad_norm_` that is saved in its fused form. Judgement."""
KEEP_CLIPPING = "Removing `clip_grad_norm_` or clipping less often: it is part of the update."


@rule(
    "compute.grad_norm_every_step",
    "Gradient norms every step",
    suppresses=("compute.user_code", "compute.sync_every_step", "compute.python_loop"),
    bonus=0.4,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "", "grad_norm")
    if job.share >= run.policy.phase_share:
        return _recording(run, job)
    return _clipping(run)


def _recording(run: RunContext, job: SideJob) -> Advice:
    wanted = 2 * job.less_often
    return Advice(
        title=f"Gradient norms every step take {run.of_time(job.share)}: "
        f"{units.seconds(job.seconds)} a step{job.where}",
        remedy=_remedy(run.seconds("grad_norm") > 0, wanted),
        change=job.guarded(wanted),
        effect=job.effect,
        price=f"one record every {wanted} steps",
        avoid=KEEP_CLIPPING,
        evidence={
            "grad_norm_share": job.share,
            "grad_norm_seconds_per_step": job.seconds,
            "parameters": run.count("model", "parameters"),
            **hot_lines.evidence(run, job.spot),
        },
        gain=RECORD_SAVED.part_of(job.change, job.most),
        because=f"{units.seconds(job.seconds)} of {units.seconds(run.period)} a step is norms",
    )


def _clipping(run: RunContext) -> Advice | None:
    """`clip_grad_norm_` itself. On a GPU it handles all parameters at once anyway."""
    cost, share = run.seconds("grad_norm"), run.share("grad_norm")
    if run.has_cuda or share < run.policy.grad_norm_share:
        return None
    spot = run.hot("grad_norm")
    where = f" at {spot.text}" if spot else " in clip_grad_norm_"
    return Advice(
        title=f"Gradient clipping takes {run.of_time(share)}: {units.seconds(cost)} a step{where}",
        remedy="Clip all parameters in a few calls: `clip_grad_norm_(parameters, max_norm, foreach=True)`.",
        change=edits.keywords(run, "clip", foreach="True"),
        effect="rounding",
        avoid=KEEP_CLIPPING,
        evidence={
            "grad_norm_share": share,
            "grad_norm_seconds_per_step": cost,
            "parameters": run.count("model", "parameters"),
            **hot_lines.evidence(run, spot),
        },
        gain=CLIPPING_SAVED.part_of(saved("grad_norm", cost, "grad_norm")),
        because=f"{units.seconds(cost)} of {units.seconds(run.period)} a step is clipping",
    )


def _remedy(clips: bool, wanted: int) -> str:
    if clips:
        return (
            "Remove the loop: `clip_grad_norm_` computes that norm already and returns it; read its value "
            f"every {wanted} steps for the record."
        )
    return (
        "Compute the norm with one fused call (`torch.nn.utils.get_total_norm`) instead of parameter by "
        f"parameter, and only every {wanted} steps."
    )

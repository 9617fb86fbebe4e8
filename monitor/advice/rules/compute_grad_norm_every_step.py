"""Gradient norms are computed in every step at a noticeable cost.

Looks at: time in `clip_grad_norm_` or in the user's own loop over the parameters after backward.
Why: A Python loop over the parameters with a norm (and `.item()`) each costs several calls per parameter;
    fixed clipping needs one fused norm, recording it needs one now and then.
Remedy: use `clip_grad_norm_(…, foreach=True)` once, and record the norm every 200 steps.
Gain: all but a tenth of that time.
"""

from __future__ import annotations

from dataclasses import replace

from monitor.advice import hotlines
from monitor.advice.context import Hotspot, RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import Side, side_job


@rule(
    "compute.grad_norm_every_step",
    suppresses=("compute.user_code", "compute.sync_every_step", "compute.python_loop"),
    bonus=0.4,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "grad_norm", "grad_norm")
    clips = run.seconds("grad_norm") > 0
    own = job.spot is not None and "clip_grad" not in job.spot.code
    if own and clips:
        job = _without_clipping(run, job)
    if job.share < (run.policy.phase_share if own else run.policy.grad_norm_share):
        return None
    parameters = run.count("model", "parameters")
    where = f" at {job.spot.words}" if job.spot else " in clip_grad_norm_"
    left = 0.9 if own else 0.6
    return Advice(
        title=f"Gradient norms every step take {percent(job.share)} of the time: {seconds(job.seconds)} a "
        f"step{where}",
        remedy=_remedy(own and clips, own),
        change=f"- {_code(run, job.spot)}\n+ if step % 200 == 0:\n"
        "+     norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])",
        evidence={
            "grad_norm_share": job.share,
            "grad_norm_seconds_per_step": job.seconds,
            "parameters": parameters,
            **hotlines.evidence(run, job.spot),
        },
        what=job.less(left),
        low=job.less(left * 0.6),
        high=job.less(1.0),
        because=f"{seconds(job.seconds)} of {seconds(run.period)} a step is norms",
    )


def _without_clipping(run: RunContext, job: Side) -> Side:
    """The loop of one's own alone: clipping may well be needed."""
    savings = tuple(saving for saving in job.savings if saving.part != "grad_norm")
    total = sum(saving.seconds for saving in savings)
    return replace(job, savings=savings, seconds=total, share=total / run.period if run.period else 0.0)


def _remedy(known: bool, own: bool) -> str:
    if known:
        return (
            "Remove the loop: `clip_grad_norm_` computes that norm already and returns it; read its value "
            "every 200 steps for the record."
        )
    if own:
        return (
            "Compute the norm with one fused call (`torch.nn.utils.get_total_norm`, or what "
            "`clip_grad_norm_` returns) instead of parameter by parameter, and only every 200 steps."
        )
    return (
        "Compute the norm with one fused call, and only when it is needed: `clip_grad_norm_(parameters, "
        "max_norm, foreach=True)` for clipping, every 200 steps for the record."
    )


def _code(run: RunContext, spot: Hotspot | None) -> str:
    known = hotlines.asked_at(run, spot).code if spot else ""
    return known or "norms = [p.grad.norm().item() for p in model.parameters()]"

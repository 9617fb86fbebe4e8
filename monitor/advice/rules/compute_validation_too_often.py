"""Validation takes a large share of the run.

Looks at: time in validation (a second loader under `no_grad`, or the phase `validate`), how often and how
    long.
Why: Validation trains nothing; done every few steps it can cost more than the training it watches.
Remedy: validate less often, or on a part of the validation set.
Gain: all but a tenth of the time validation takes now.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import Side, side_job


@rule(
    "compute.validation_too_often",
    suppresses=("trend.periodic_stalls", "compute.user_code", "compute.small_batch", "input.bound"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "validate", "validate")
    if job.share < run.policy.validation_share or 0 < job.count < 3:
        return None
    every, took = (1.0, job.seconds) if job.every_step else (job.every, job.each)
    often = "in the loop" if not every else "every step" if every < 1.5 else f"every {every:.0f} steps"
    each = f", {seconds(took)} each" if took else ""
    wanted = _interval(every, took, (run.period or 0.0) - job.seconds if took is job.seconds else run.usual)
    where = f" ({job.spot.place})" if job.spot else ""
    return Advice(
        title=f"Validation takes {percent(job.share)} of the time: {often}{each}{where}",
        remedy=f"Validate every {wanted} steps (or once an epoch) instead of {often}, or on a part of the "
        "set.",
        change=_diff(run, job, every, wanted),
        evidence={
            "validate_share": job.share,
            "validate_seconds": took,
            "every_steps": every,
            "suggested_every_steps": wanted,
            **hotlines.evidence(run, job.spot),
        },
        what=job.less(0.93),
        low=job.less(0.75),
        high=job.less(1.0),
        because=f"{seconds(job.seconds)} a step goes into validation now",
    )


def _diff(run: RunContext, job: Side, every: float | None, wanted: int) -> str:
    if job.spot is not None and job.every_step:
        code = hotlines.asked_at(run, job.spot).code
        return f"- {code}\n+ if step % {wanted} == 0:\n+     {code}"
    return f"- if step % {every or 1:.0f} == 0:\n+ if step % {wanted} == 0:\n      validate(model)"


def _interval(every: float | None, each: float | None, step: float | None) -> int:
    """Steps between validations that keep them near 5 % of the time."""
    if not each or not step:
        return max(10, round((every or 1) * 10))
    return max(round((every or 1) * 2), round(each / step * 19 / 10) * 10, 10)

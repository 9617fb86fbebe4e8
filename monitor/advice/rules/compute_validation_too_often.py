"""Validation takes a large share of the run.

Looks at: time in validation (a second loader under `no_grad`, the phase `validate`, a pass without gradients
    whose result no step needs), how often and how long.
Why: Validation trains nothing; done every few steps it can cost more than the training it watches.
Remedy: validate less often, or on part of the validation set.
Gain: all but a tenth of the time validation takes now.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.context.work import VALIDATE, Work
from monitor.advice.evidence import frameworks, hot_lines
from monitor.advice.evidence.side_jobs import SideJob, is_every_step, often, side_job
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.finding import Effect

SAVED = Bounds(low=0.75, likely=0.93, high=1.0)
"""Share of the validation that is saved at the suggested interval. Judgement."""
STEPS_PER_VALIDATION = 19
"""Training between two validations should last this many times as long as one, which then takes 5 % of the
time."""
ROUND = 10
"""A suggested interval is a multiple of this, or this many times the current one if times are unknown."""


@rule(
    "compute.validation_too_often",
    "Frequent validation",
    suppresses=("trend.periodic_stalls", "compute.user_code", "compute.small_batch", "input.bound"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "validate", "validate")
    share = min(job.share, _device_share(run))
    if share < run.policy.validation_share or 0 < job.count < run.policy.side_job_count:
        return None
    if not _sampled(run) and run.setting("sites", "made_to_train_on") is not None:
        return None  # what the source shows without gradients is what the loss is computed from
    every, took = job.interval
    now = often(every, "in the loop")
    each = f", {units.seconds(took)} each" if took else ""
    step = (run.period or 0.0) - job.seconds if is_every_step(every) else run.usual
    wanted = job.interval_of(_interval(every, took, step))
    place = _place(run, job)
    where = f" ({place.place})" if place else ""
    return Advice(
        title=f"Validation takes {units.percent(share)} of the time: {now}{each}{where}",
        remedy=f"Validate every {wanted} steps (or once an epoch) instead of {now}, or on part of the set."
        + frameworks.setting(run, "validate", every=wanted),
        change=job.guarded(wanted) if place is job.work else "",
        effect=_effect(job),
        price=f"the model is evaluated every {wanted} steps, so the best one is found that much later",
        avoid="Leaving out a pass without gradients whose result the loss uses, such as a teacher's.",
        evidence={
            "validate_share": share,
            "validate_seconds": took,
            "every_steps": every,
            "suggested_every_steps": wanted,
            **hot_lines.evidence(run, job.spot),
        },
        gain=SAVED.part_of(job.change, job.most),
        because=f"{units.seconds(job.seconds)} a step is spent on validation now",
    )


def _sampled(run: RunContext) -> bool:
    """Whether it is known what is done in this phase."""
    return VALIDATE in {*(one.phase for one in run.work), *(one.phase for one in run.hotspots)}


def _place(run: RunContext, job: SideJob) -> Work | Hotspot | None:
    """Where it is called, rather than a line of the model, which trains, too; only what has a good part of it
    (a library's evaluation calls the user's metrics as well)."""
    least = run.policy.hot_share * job.seconds
    return next((one for one in (job.work, job.spot) if one and run.hot_seconds(one) >= least), None)


def _device_share(run: RunContext) -> float:
    """Share of the device's time, if known: in this phase the host may still wait for earlier training
    work."""
    if run.lanes is not None:
        return run.lanes.share("validate")
    time = run.device.time if run.device else {}
    total = sum(time.values())
    return time.get("validate", 0.0) / total if total > 0 else 1.0


def _effect(job: SideJob) -> Effect:
    """A loader draws from torch's generator each time it is iterated, so later random numbers differ; if a
    step uses the result (to stop early, to lower the learning rate), the training itself changes."""
    return "changes_training" if job.effect == "changes_training" else "in_expectation"


def _interval(every: float | None, each: float | None, step: float | None) -> int:
    """Steps between validations that keep them near 5 % of the time."""
    if not each or not step:
        return max(ROUND, round((every or 1) * ROUND))
    enough = round(each / step * STEPS_PER_VALIDATION / ROUND) * ROUND
    return max(round((every or 1) * 2), enough, ROUND)

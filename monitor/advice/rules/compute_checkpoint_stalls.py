"""Saving checkpoints stops the training for a noticeable share of the time.

Looks at: time in `torch.save` (phase `checkpoint`), how often, how long.
Why: A synchronous save holds up every step after it; saving too often is one of the most common causes of
    idle GPUs.
Remedy: save less often, only what is needed, or from a background thread on a copy.
Gain: c / (I·T + c) of the time, minus what remains at the new interval.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import frameworks, hot_lines
from monitor.advice.evidence.side_jobs import often, side_job
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.85, likely=0.98, high=1.0)
"""Share of the checkpoint time that is saved at the suggested interval. Judgement."""
WANTED_SHARE = 0.02
"""Share of the time that checkpoints may take; the suggested interval aims for it."""
ROUND = 10
"""A suggested interval is a multiple of this."""


@rule(
    "compute.checkpoint_stalls",
    "Frequent checkpoints",
    suppresses=("trend.periodic_stalls", "compute.user_code", "compute.state_copies"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "checkpoint", "save")
    if job.share < run.policy.phase_share or 0 < job.count < run.policy.side_job_count:
        return None
    every, took = job.interval
    now = often(every, "often")
    each = f", {units.seconds(took)} each" if took else ""
    place = job.spot or job.work
    where = f" ({place.place})" if place else ""
    wanted = job.interval_of(_interval(every, job.share))
    return Advice(
        title=f"Checkpoints take {run.of_time(job.share)}: saved {now}{each}{where}",
        remedy=f"Save every {wanted} steps (or once an epoch, or only when the model got better) instead of "
        f"{now}; or copy the state and save it from a thread."
        + frameworks.setting(run, "save", every=wanted),
        change=job.guarded(wanted),
        effect=job.effect or "identical",
        price=f"up to {wanted} steps are lost when the run dies",
        avoid="Saving from a thread without a copy: the optimizer changes the state meanwhile.",
        evidence={
            "checkpoint_share": job.share,
            "checkpoint_seconds": took,
            "every_steps": every,
            "suggested_every_steps": wanted,
            **hot_lines.evidence(run, job.spot),
        },
        gain=SAVED.part_of(job.change, job.most),
        because=f"{units.seconds(job.seconds)} a step is spent saving now",
    )


def _interval(every: float | None, share: float) -> int:
    """Steps between checkpoints that keep them near `WANTED_SHARE` of the time."""
    rest = 1.0 - share
    factor = max(2.0, share / rest / WANTED_SHARE) if rest > 0 else 2.0
    wanted = (every or 1.0) * factor
    return max(ROUND, round(wanted / ROUND) * ROUND)

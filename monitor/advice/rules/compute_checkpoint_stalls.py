"""Saving checkpoints stops the training for a noticeable share of the time.

Looks at: time in `torch.save` (phase `checkpoint`), how often, how long.
Why: A synchronous save stops every step behind it; saving too often is one of the most frequent causes of
    idle GPUs.
Remedy: save less often, only what is needed, or from a background thread on a copy.
Gain: c / (I·T + c) of the time, less what is left at the new interval.
"""

from __future__ import annotations

import re
from dataclasses import replace

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import Side, side_job
from monitor.advice.whatif import Saving

FILE = re.compile(r"fsync\(|os\.(replace|rename|sync)\(|\.rename\(|shutil\.(move|copy)")


@rule(
    "compute.checkpoint_stalls",
    suppresses=("trend.periodic_stalls", "compute.user_code", "compute.state_copies"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = _with_files(run, side_job(run, "checkpoint", "checkpoint"))
    if job.share < run.policy.phase_share or 0 < job.count < 3:
        return None
    every, took = (1.0, job.seconds) if job.every_step else (job.every, job.each)
    often = "often" if not every else "every step" if every < 1.5 else f"every {every:.0f} steps"
    each = f", {seconds(took)} each" if took else ""
    where = f" ({job.spot.place})" if job.spot else ""
    wanted = _interval(every, job.share)
    return Advice(
        title=f"Checkpoints take {percent(job.share)} of the time: saved {often}{each}{where}",
        remedy=f"Save every {wanted} steps (or once an epoch, or only when the model got better) instead of "
        f"{often}; or copy the state and save it from a thread.",
        change=_diff(run, job, every, wanted),
        evidence={
            "checkpoint_share": job.share,
            "checkpoint_seconds": took,
            "every_steps": every,
            "suggested_every_steps": wanted,
            **hotlines.evidence(run, job.spot),
        },
        what=job.less(0.98),
        low=job.less(0.85),
        high=job.less(1.0),
        because=f"{seconds(job.seconds)} a step goes into saving now",
    )


def _with_files(run: RunContext, job: Side) -> Side:
    """The job with what is done to the file beside `torch.save`: written through to the disk, renamed."""
    own = {saving.cause for saving in job.savings}
    lines = [spot for spot in run.hotspots if spot.phase in hotlines.PHASES_OF_LOOP]
    files = [spot for spot in lines if FILE.search(spot.code) and spot.place not in own]
    if not files or not run.seconds("checkpoint") or not run.period:
        return job
    more = tuple(Saving(spot.phase, run.hot_seconds(spot), spot.place) for spot in files)
    total = job.seconds + sum(saving.seconds for saving in more)
    return replace(job, seconds=total, share=total / run.period, savings=job.savings + more)


def _diff(run: RunContext, job: Side, every: float | None, wanted: int) -> str:
    code = hotlines.asked_at(run, job.spot).code if job.spot else ""
    if code and (every or 0.0) < 1.5:
        return f"- {code}\n+ if step % {wanted} == 0:\n+     {code}"
    return f"- if step % {every or 1:.0f} == 0:\n+ if step % {wanted} == 0:\n      {code or 'torch.save(…)'}"


def _interval(every: float | None, share: float) -> int:
    """Steps between checkpoints that keep them near 2 % of the time."""
    factor = max(2.0, share / max(1e-9, 1.0 - share) / 0.02)
    wanted = (every or 1.0) * factor
    return max(10, round(wanted / 10) * 10)

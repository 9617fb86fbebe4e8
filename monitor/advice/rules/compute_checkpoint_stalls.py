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
    often = f"every {max(1, job.every):.0f} steps" if job.every else "often"
    each = f", {seconds(job.each)} each" if job.each else ""
    where = f" ({job.spot.place})" if job.spot else ""
    wanted = _interval(job.every, job.share)
    return Advice(
        title=f"Checkpoints take {percent(job.share)} of the time: saved {often}{each}{where}",
        remedy=f"Save every {wanted} steps (or once an epoch, or only when the model got better) instead of "
        f"{often}; or copy the state and save it from a thread.",
        change=f"- if step % {job.every or 1:.0f} == 0:\n+ if step % {wanted} == 0:\n      torch.save(…)",
        evidence={
            "checkpoint_share": job.share,
            "checkpoint_seconds": job.each,
            "every_steps": job.every,
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


def _interval(every: float | None, share: float) -> int:
    """Steps between checkpoints that keep them near 2 % of the time."""
    factor = max(2.0, share / max(1e-9, 1.0 - share) / 0.02)
    wanted = (every or 1.0) * factor
    return max(10, round(wanted / 10) * 10)

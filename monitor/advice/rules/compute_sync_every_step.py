"""The loop waits for the device in every step to read a value.

Looks at: time in `.item()`, `.cpu()`, `.tolist()`, `synchronize()` and how many of them a step.
Why: Reading a value makes the CPU wait until the GPU has finished everything queued: no kernel can be
    launched meanwhile and the queue runs empty.
Remedy: accumulate on the device and read it every 50–100 steps.
Gain: the time in those calls that is not simply the device finishing work it had to do anyway.
"""

from __future__ import annotations

from dataclasses import replace

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import Side, side_job
from monitor.advice.whatif import Saving

MANY_READS = 8
"""Reads a step."""


@rule("compute.sync_every_step", suppresses=("compute.user_code", "compute.python_loop"), bonus=0.2)
def check(run: RunContext) -> Advice | None:
    job = _measured(run, side_job(run, "sync", "sync"))
    items = run.scalar("sync.items_per_step")
    if job.share < run.policy.phase_share:
        return None
    reads = "reads of device values" if run.has_cuda else "reads of single values (`.item()` and the like)"
    many = f"{items:.0f} {reads} a step" if items else f"{reads} every step"
    where = f", at {job.spot.words}" if job.spot else ""
    head = "Synchronising every step" if run.has_cuda else "Values read out every step"
    hidden = 0.4 if run.has_cuda else 0.9
    return Advice(
        title=f"{head}: {many} take {seconds(job.seconds)} ({percent(job.share)}){where}",
        remedy="Keep the value as a tensor (`running += loss.detach()`) and read it every 100 steps; "
        "convert whole "
        "tensors once instead of element by element.",
        change=f"- {_code(run, job)}\n+ if step % 100 == 0:   # between, keep sums: total += loss.detach()\n"
        f"+     {_code(run, job)}",
        evidence={
            "sync_share": job.share,
            "sync_seconds_per_step": job.seconds,
            "items_per_step": items,
            **hotlines.evidence(run, job.spot),
        },
        what=job.less(hidden),
        low=job.less(hidden * 0.4),
        high=job.less(1.0),
        because="on a GPU part of this wait is work that has to be done anyway"
        if run.has_cuda
        else "it is host time",
    )


def _code(run: RunContext, job: Side) -> str:
    known = hotlines.asked_at(run, job.spot).code if job.spot else ""
    return known or "history.append(loss.item())"


def _measured(run: RunContext, job: Side) -> Side:
    """Where the SDK has timed the reads themselves, that counts, not the lines they stand on; unless there
    are so many that making and reading those values is what the lines are for."""
    seconds_read = run.scalar("sync.seconds_per_step")
    many = (run.scalar("sync.items_per_step") or 0.0) >= MANY_READS
    if seconds_read is None or run.period is None or (many and job.savings and not run.has_cuda):
        return job
    factor = min(1.0, seconds_read / job.seconds) if job.seconds > 0 else 0.0
    if not job.savings:
        return replace(
            job,
            seconds=seconds_read,
            share=seconds_read / run.period,
            savings=(Saving("*", seconds_read, "sync"),),
        )
    return replace(
        job, seconds=job.seconds * factor, share=job.share * factor, savings=job.less(factor).savings
    )

"""Logging, printing or writing files in every step takes a noticeable share of the time.

Looks at: time in print, logging, progress bars, experiment writers and file writes inside the loop.
Why: A line of output each step costs formatting, a system call, often a flush, and the value printed has
    to be fetched from the device first.
Remedy: log every 50–100 steps, keep values on the device between.
Gain: all but a fiftieth of that time.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import side_job

KINDS = ("log", "file", "plot")
WORDS = {"log": "Logging", "file": "Writing files", "plot": "Drawing plots"}


@rule(
    "compute.logging_too_often",
    suppresses=("compute.user_code", "compute.python_loop", "compute.sync_every_step"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "log", *KINDS)
    if job.share < run.policy.phase_share:
        return None
    kind = hotlines.kind_of(job.spot) if job.spot else "log"
    where = f" at {job.spot.words}" if job.spot else ""
    prints = run.scalar("log.prints_per_step")
    often = f"{prints:.0f} times a step" if prints and prints >= 1.5 else "every step"
    return Advice(
        title=f"{WORDS.get(kind, 'Logging')} {often} takes {percent(job.share)} of the time: "
        f"{seconds(job.seconds)} a step{where}",
        remedy="Do it every 100 steps: keep the values in a list (tensors detached, not `.item()`), and "
        "write them "
        "out together.",
        change="  losses.append(loss.detach())\n- log(step, loss)\n+ if step % 100 == 0:\n+     log(step, "
        "losses)",
        evidence={
            "log_share": job.share,
            "log_seconds_per_step": job.seconds,
            "prints_per_step": prints,
            "writes_per_step": run.scalar("log.writes_per_step"),
            **hotlines.evidence(run, job.spot),
        },
        what=job.less(0.97),
        low=job.less(0.75),
        high=job.less(1.0),
        because=f"{seconds(job.seconds)} of {seconds(run.period)} a step is output",
    )

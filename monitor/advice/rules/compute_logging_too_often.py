"""Logging, printing or writing files in every step takes a noticeable share of the time.

Looks at: time in print, logging, progress bars, experiment writers and file writes inside the loop.
Why: A line of output each step costs formatting, a system call, often a flush, and the value printed has
    to be fetched from the device first.
Remedy: log every 50–100 steps, keep values on the device between.
Gain: all but a fiftieth of that time.
"""

from __future__ import annotations

import re

from monitor.advice import hotlines
from monitor.advice.context import Hotspot, RunContext
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
        remedy=_remedy(run, kind, job.spot),
        change=_diff(run, job.spot),
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


def _remedy(run: RunContext, kind: str, spot: Hotspot | None) -> str:
    at = f" at {hotlines.asked_at(run, spot).place}" if spot else ""
    if kind == "plot":
        return (
            f"Draw once an epoch (or every 500 steps) instead of every step{at}; keep the numbers until then."
        )
    if kind == "file":
        sync = spot is not None and re.search("fsync|flush", f"{spot.code} {spot.inside}")
        buffered = "without flush and fsync after each line" if sync else "through one open, buffered file"
        return (
            f"Write{at} every 100 steps, {buffered}: keep the records in a list and write them out together."
        )
    return (
        f"Do it{at} every 100 steps: keep the values in a list (tensors detached, not `.item()`) and write "
        "them out together."
    )


def _diff(run: RunContext, spot: Hotspot | None) -> str:
    code = (hotlines.asked_at(run, spot).code if spot else "") or "log(step, loss)"
    return f"- {code}\n+ if step % 100 == 0:\n+     {code}"

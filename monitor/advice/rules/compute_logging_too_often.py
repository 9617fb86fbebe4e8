"""Logging, printing or writing files in every step takes a noticeable share of the time.

Looks at: time in print, logging, progress bars, experiment writers and file writes inside the loop.
Why: A line of output every step costs formatting, a system call, often a flush, and the printed value has to
    be fetched from the device first.
Remedy: log every 50–100 steps, keep values on the device in between.
Gain: all but a fiftieth of that time.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import frameworks, hot_lines
from monitor.advice.evidence.side_jobs import EVERY_STEP, SideJob, often, side_job
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.85, likely=0.97, high=1.0)
"""Share of the output's time that is saved by writing only every 100th step. Judgement."""
PLOT_LESS_OFTEN = 5
"""One picture says as much as this many records. Judgement."""
KINDS = ("log", "file", "plot")
WORDS = {"log": "Logging", "file": "Writing files", "plot": "Drawing plots"}


@rule(
    "compute.logging_too_often",
    "Frequent logging",
    suppresses=("compute.user_code", "compute.python_loop", "compute.sync_every_step"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "log", *KINDS)
    if job.share < run.policy.phase_share:
        return None
    kind = _kind(job)
    prints = run.scalar("log.prints_per_step")
    times = (
        f"{units.whole(prints)} times a step"
        if prints and prints >= EVERY_STEP
        else often(job.every, "every step")
    )
    wanted = job.less_often * (PLOT_LESS_OFTEN if kind == "plot" else 1)
    return Advice(
        title=f"{WORDS[kind]} {times} takes {run.of_time(job.share)}: "
        f"{units.seconds(job.seconds)} a step{job.where}",
        remedy=_remedy(job, kind, wanted) + frameworks.setting(run, "log", every=wanted),
        change=job.guarded(wanted),
        knobs={"log.every": str(wanted)},
        effect=job.effect or "identical",
        price=f"one record every {wanted} steps",
        evidence={
            "log_share": job.share,
            "log_seconds_per_step": job.seconds,
            "prints_per_step": prints,
            "writes_per_step": run.scalar("log.writes_per_step"),
            **hot_lines.evidence(run, job.spot),
        },
        gain=SAVED.part_of(job.change, job.most),
        because=f"{units.seconds(job.seconds)} of {units.seconds(run.period)} a step is output",
    )


def _kind(job: SideJob) -> str:
    told = [one.job for one in (job.work, job.spot) if one is not None]
    return next((one for one in told if one in WORDS), "log")


def _remedy(job: SideJob, kind: str, every: int) -> str:
    if kind == "plot":
        rarely = f"once an epoch (or every {every} steps)"
        return f"Draw {rarely}{job.site}; keep the numbers until then."
    if kind == "file":
        written = "through one open, buffered file, without flush and fsync after each line"
        return f"Write{job.site} every {every} steps, {written}: keep the records in a list until then."
    return (
        f"Do it{job.site} every {every} steps: keep the values in a list (tensors detached, not `.item()`) "
        "and write them out together."
    )

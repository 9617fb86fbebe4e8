"""The loop sleeps.

Looks at: time in `time.sleep` inside the training loop.
Why: A pause left in the loop (for pacing, polling, a debug aid) is pure loss.
Remedy: remove it.
Gain: all of that time.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import line_job


@rule("compute.sleep", suppresses=("compute.user_code",), bonus=0.5)
def check(run: RunContext) -> Advice | None:
    job = line_job(run, "sleep")
    if job.spot is None or job.share < run.policy.phase_share:
        return None
    return Advice(
        title=f"The loop sleeps: {hotlines.words(run, job.spot)}",
        remedy=f"Remove the sleep at {job.spot.place}.",
        change=f"- {job.spot.code or 'time.sleep(…)'}",
        evidence={"sleep_share": job.share, **hotlines.evidence(run, job.spot)},
        what=job.less(1.0),
        low=job.less(0.97),
        high=job.less(1.0),
        because=f"{seconds(job.seconds)} of {seconds(run.period)} a step is sleep",
    )

"""Metrics are computed in every step at a noticeable cost.

Looks at: time in metric code (accuracy, F1, confusion matrix, scikit-learn) inside the training loop.
Why: Training metrics on every batch move predictions to the host and run single-threaded Python; every
    50th batch tells as much.
Remedy: compute them every 50–100 steps, vectorised, or accumulate on the device.
Gain: all but a fiftieth of that time.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import line_job


@rule("compute.metrics_every_step", suppresses=("compute.user_code", "compute.python_loop"), bonus=0.3)
def check(run: RunContext) -> Advice | None:
    job = line_job(run, "metrics")
    if job.spot is None or job.share < run.policy.phase_share:
        return None
    asked = hotlines.asked_at(run, job.spot)
    code = asked.code or "compute_metrics(…)"
    return Advice(
        title=f"Metrics every step take {percent(job.share)} of the time: {seconds(job.seconds)} a step, "
        f"most of it at {job.spot.words}",
        remedy=f"Compute it every 100 steps instead (at {asked.place}), and with tensor operations rather "
        "than in Python.",
        change=f"- {code}\n+ if step % 100 == 0:\n+     {code}",
        evidence={"metrics_share": job.share, **hotlines.evidence(run, job.spot)},
        what=job.less(0.97),
        low=job.less(0.7),
        high=job.less(1.0),
        because=f"{seconds(job.seconds)} of {seconds(run.period)} a step is metrics",
    )

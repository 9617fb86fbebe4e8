"""Results that no step needs are computed in every step at a noticeable cost.

Looks at: work in the training loop whose result reaches neither `backward()` nor the next step, and calls to
    metrics of scikit-learn or torchmetrics.
Why: Scoring every batch moves predictions to the host and runs single-threaded Python; every 100th batch
    tells as much.
Remedy: compute it every 100 steps, vectorised, or accumulate on the device.
Gain: all but a hundredth of that time.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.evidence.side_jobs import SideJob, often, side_job
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.85, likely=0.97, high=1.0)
"""Share of the metrics' time that is saved by computing them every 100th step: of ten gains measured by the
wall clock, the lowest was that of 0.93 of it."""


@rule(
    "compute.metrics_every_step",
    "Metrics every step",
    suppresses=("compute.user_code", "compute.python_loop"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "", "metrics")
    if job.work is None or job.share < run.policy.phase_share:
        return None
    now, wanted = often(job.every, "every step"), job.less_often
    return Advice(
        title=f"Metrics {now} take {run.of_time(job.share)}: "
        f"{units.seconds(job.seconds)} a step, most of it{job.where}",
        remedy=_remedy(job, wanted),
        change=job.guarded(wanted),
        effect=job.effect,
        price=f"one value every {wanted} steps",
        avoid="Cutting back work that the loss, the next action or a buffer depends on.",
        evidence={"metrics_share": job.share, "every_steps": job.every, **hot_lines.evidence(run, job.spot)},
        gain=SAVED.part_of(job.change),
        because=f"{units.seconds(job.seconds)} of {units.seconds(run.period)} a step is metrics",
    )


def _remedy(job: SideJob, wanted: int) -> str:
    known = job.work is not None and job.work.needed == "no"
    why = "no step needs its result" if known else "if no step needs its result"
    return f"Compute it every {wanted} steps{job.site} ({why}), with tensor operations rather than in Python."

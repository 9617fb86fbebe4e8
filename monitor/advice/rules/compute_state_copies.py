"""The model's state is copied again and again inside the loop.

Looks at: time in `copy.deepcopy`, `state_dict()` and the like in the loop.
Why: A deep copy of the model (for the best weights, an average, a snapshot) copies every parameter
    through Python; once a step it can cost more than the step.
Remedy: copy only when the result is kept; update averages in place with `torch._foreach_lerp_` or
    `AveragedModel`.
Gain: all but a twentieth of that time.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import line_job


@rule("compute.state_copies", suppresses=("compute.user_code", "compute.python_loop"), bonus=0.3)
def check(run: RunContext) -> Advice | None:
    job = line_job(run, "copy")
    if job.spot is None or job.share < run.policy.phase_share:
        return None
    return Advice(
        title=f"Copies of the model every step: {hotlines.words(run, job.spot)}",
        remedy=f"Copy at {job.spot.place} only when the copy is kept (a new best, once an epoch); for a "
        "running "
        "average update in place (`torch.optim.swa_utils.AveragedModel`, `torch._foreach_lerp_`).",
        change=f"- {job.spot.code or 'best = copy.deepcopy(model)'}\n+ if improved:\n"
        f"+     {job.spot.code or 'best = copy.deepcopy(model.state_dict())'}",
        evidence={"copy_share": job.share, **hotlines.evidence(run, job.spot)},
        what=job.less(0.95),
        low=job.less(0.7),
        high=job.less(1.0),
        because=f"{seconds(job.seconds)} of {seconds(run.period)} a step is copying",
    )

"""The model's state is copied or averaged again and again inside the loop.

Looks at: time in `copy.deepcopy`, `state_dict()`, averages of the weights and the like in the loop.
Why: A deep copy of the model (for the best weights, an average, a snapshot) copies every parameter
    through Python; once a step it can cost more than the step.
Remedy: copy only when the result is kept; update averages in place with `torch._foreach_lerp_` or
    `AveragedModel`.
Gain: all but a twentieth of that time.
"""

from __future__ import annotations

import re

from monitor.advice import hotlines
from monitor.advice.context import Hotspot, RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import line_job


@rule("compute.state_copies", suppresses=("compute.user_code", "compute.python_loop"), bonus=0.3)
def check(run: RunContext) -> Advice | None:
    job = line_job(run, "copy")
    if job.spot is None or job.share < run.policy.phase_share:
        return None
    average = _average(job.spot)
    return Advice(
        title=("Weights averaged in a Python loop every step: " if average else "Model copied every step: ")
        + f"{seconds(job.seconds)} ({percent(job.share)}), at {job.spot.words}",
        remedy=_remedy(job.spot, average),
        change=_diff(run, job.spot, average),
        evidence={"copy_share": job.share, **hotlines.evidence(run, job.spot)},
        what=job.less(0.85 if average else 0.95),
        low=job.less(0.5 if average else 0.7),
        high=job.less(1.0),
        because=f"{seconds(job.seconds)} of {seconds(run.period)} a step is copying",
    )


def _average(spot: Hotspot) -> bool:
    """A running average of the weights rather than a copy that is kept."""
    return bool(re.search(r"ema|averag|shadow|decay|momentum|teacher", f"{spot.code} {spot.function}", re.I))


def _remedy(spot: Hotspot, average: bool) -> str:
    if average:
        return (
            f"Update all averages at {spot.place} with one call, in place (`torch._foreach_lerp_`, or "
            "`torch.optim.swa_utils.AveragedModel`), or only every 10 steps with the decay raised to match."
        )
    return (
        f"Copy at {spot.place} only when the copy is kept (a new best, once an epoch); a state dict with "
        "`.detach().clone()` is enough, the optimizer's state rarely is needed."
    )


def _diff(run: RunContext, spot: Hotspot, average: bool) -> str:
    if average:
        return f"- {spot.code}   # per parameter\n+ torch._foreach_lerp_(averages, parameters, 1 - decay)"
    code = hotlines.asked_at(run, spot).code or "best = copy.deepcopy(model.state_dict())"
    return f"- {code}\n+ if improved:\n+     {code}"

"""The model's state is copied or averaged again and again inside the loop.

Looks at: time in the loop spent in `copy.deepcopy`, `load_state_dict`, and averages that no step reads.
Why: A deep copy of the model (for the best weights, an average, a snapshot) copies every parameter
    through Python; once a step it can cost more than the step.
Remedy: copy only when the result is kept; update averages in place with `torch._foreach_lerp_` or
    `AveragedModel`.
Gain: all but a twentieth of that time.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.evidence.side_jobs import SideJob, side_job
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, Saving
from monitor.advice.rule import Advice, rule
from monitor.model import units

AVERAGE_SAVED, COPY_SAVED = Bounds(low=0.65, likely=0.85, high=1.0), Bounds(low=0.75, likely=0.9, high=1.0)
"""Share of the time that is saved: for an average updated in one call, and for a copy made only when it is
kept. Judgement."""
COPY_BESIDE, REST_BESIDE = 1.5, 0.25
"""Nearly the most that copies cost by the wall clock, as a multiple of their own time: fresh memory for all
weights every step, and cold caches for what follows (1.2, 1.2 and 1.8 in three scripts). But at most this
share of what is left of the step. Judgement."""
IN_OPTIMIZER = ("optimizer",)
"""An optimizer of the user's own may copy in its `step`."""


@rule(
    "compute.state_copies",
    "Model state copied",
    suppresses=("compute.user_code", "compute.python_loop"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "", "copy", also=IN_OPTIMIZER)
    if (job.spot or job.work) is None or job.share < run.policy.phase_share:
        return None
    average = job.work is not None and job.work.carried and not job.work.api
    return Advice(
        title=("Weights averaged in a Python loop every step: " if average else "Model copied every step: ")
        + f"{units.seconds(job.seconds)} ({units.percent(job.share)}),{job.where}",
        remedy=_remedy(job, average),
        change="" if average else job.guarded(job.less_often),
        effect="rounding" if average else job.effect,
        price="" if average else f"a copy that is up to {job.less_often} steps old",
        avoid="Updating an average less often with the same decay: it becomes another average."
        if average
        else "",
        evidence={"copy_share": job.share, "average": average, **hot_lines.evidence(run, job.spot)},
        gain=AVERAGE_SAVED.part_of(job.change)
        if average
        else COPY_SAVED.part_of(job.change, _most(run, job)),
        because=f"{units.seconds(job.seconds)} of {units.seconds(run.period)} a step is copying",
    )


def _most(run: RunContext, job: SideJob) -> Change:
    """The step without the copy and without what it costs the work after it."""
    rest = max(0.0, (run.period or 0.0) - job.seconds)
    beside = min((COPY_BESIDE - 1.0) * job.seconds, REST_BESIDE * rest)
    return Change(savings=(*job.savings, Saving("*", beside, "beside it")))


def _remedy(job: SideJob, average: bool) -> str:
    if average:
        return (
            f"Update all averages{job.site} with one call, in place: `torch._foreach_lerp_(averages, "
            "weights, 1 - decay)` under `no_grad`, or `torch.optim.swa_utils.AveragedModel`; without copying "
            "the state."
        )
    return (
        f"Copy{job.site} only when the copy is kept (a new best, once an epoch); a state dict with "
        "`.detach().clone()` is enough, the optimizer's state rarely is needed."
    )

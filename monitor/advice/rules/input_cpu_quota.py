"""The container's CPU quota stops the run again and again.

Looks at: the cgroup's quota and the share of periods it was throttled.
Why: Workers see all cores of the machine, but the quota grants fewer: the kernel stops the whole container
    for the rest of each period, training loop included.
Remedy: raise the CPU limit, or use as many workers and threads as the quota has cores.
Gain: the throttled share of the time, at most.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.host import Cgroup

SAVED = Bounds(low=0.2, likely=0.6, high=0.95)
"""Share of the throttled periods that is saved. Judgement: a stopped period had already done part of its
work."""


@rule(
    "input.cpu_quota",
    "CPU quota",
    suppresses=("input.cpu_saturated", "input.too_few_workers", "input.bound"),
)
def check(run: RunContext) -> Advice | None:
    cgroup = _limited(run)
    if cgroup is None or cgroup.cpu_quota_cores is None or cgroup.cpu_throttled_ratio is None:
        return None
    throttled = cgroup.cpu_throttled_ratio
    if throttled < run.policy.quota_throttled:
        return None
    quota = cgroup.cpu_quota_cores
    workers = run.workers
    fit = max(0, int(quota) - 1)
    return Advice(
        title=f"CPU quota: the container may use {units.number(quota)} cores "
        f"and was stopped in {units.percent(throttled)} of periods",
        remedy=f"Raise the CPU limit above {units.number(quota)}"
        + (
            f", or use num_workers={fit} instead of {workers}."
            if workers is not None and workers > fit
            else "."
        ),
        change=f"resources.limits.cpu: {units.whole(quota * 2)}",
        effect="identical",
        evidence={"cpu_quota_cores": quota, "cpu_throttled_ratio": throttled, "num_workers": workers},
        gain=SAVED.of(lambda part: Change(everything=1.0 - part * min(1.0, throttled))),
        because=f"{units.percent(throttled)} of periods end early",
    )


def _limited(run: RunContext) -> Cgroup | None:
    """The limits of the training process, else those gpumon itself runs under."""
    for process in run.processes:
        if process.role == "trainer" and process.cgroup.cpu_throttled_ratio is not None:
            return process.cgroup
    return run.snapshot.host.cgroup

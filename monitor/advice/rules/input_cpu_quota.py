"""The container's CPU quota stops the run again and again.

Looks at: the cgroup's quota and the share of periods it was throttled.
Why: Workers see all cores of the machine, the quota gives them fewer: the kernel stops the whole
    container for the rest of each period, training loop included.
Remedy: raise the CPU limit, or use as many workers and threads as the quota has cores.
Gain: the throttled share of the time, at most.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change
from monitor.snapshot import Cgroup


@rule("input.cpu_quota", suppresses=("input.cpu_saturated", "input.too_few_workers", "input.bound"))
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
        title=f"CPU quota: the container may use {quota:.1f} cores and was stopped in {percent(throttled)} "
        "of periods",
        remedy=f"Raise the CPU limit above {quota:.1f}"
        + (
            f", or use num_workers={fit} instead of {workers}."
            if workers is not None and workers > fit
            else "."
        ),
        change=f"- resources.limits.cpu: {quota:.1f}\n+ resources.limits.cpu: {quota * 2:.0f}",
        evidence={"cpu_quota_cores": quota, "cpu_throttled_ratio": throttled, "num_workers": workers},
        what=Change(everything=1.0 - 0.6 * min(1.0, throttled)),
        low=Change(everything=1.0 - 0.2 * min(1.0, throttled)),
        high=Change(everything=1.0 - 0.95 * min(1.0, throttled)),
        because=f"{percent(throttled)} of periods end early",
    )


def _limited(run: RunContext) -> Cgroup | None:
    """The limits of the training process, else of where gpumon runs."""
    for process in run.processes:
        if process.role == "trainer" and process.cgroup.cpu_throttled_ratio is not None:
            return process.cgroup
    return run.snapshot.host.cgroup

"""Only one compute thread on a machine with more cores.

Looks at: torch's thread count against the cores, a CPU-only model, long steps.
Why: On a CPU large operations scale with threads; one thread leaves the other cores idle.
Remedy: `torch.set_num_threads(cores)`.
Gain: Amdahl on forward + backward with half the ideal scaling.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.threads_few")
def check(run: RunContext) -> Advice | None:
    threads, cores = run.count("threads", "torch"), run.cores
    if threads is None or cores is None or run.has_cuda or run.usual is None or len(run.run.ranks) > 1:
        return None
    if threads * 2 > cores or run.usual < 0.01 or run.workers or run.setting("threads", "omp_env"):
        return None
    share = run.compute_share
    if share < run.policy.dominant_share:
        return None
    most = int(cores)
    return Advice(
        title=f"{threads} compute thread on {cores:.0f} cores: forward and backward are {percent(share)} "
        "of the step",
        remedy=f"Let torch use the cores: torch.set_num_threads({most}).",
        change=f"- torch.set_num_threads({threads})\n+ torch.set_num_threads({most})",
        evidence={"torch_threads": threads, "cores": cores, "compute_share": share},
        what=compute_change(run, 0.5 + 0.5 * threads / most),
        low=compute_change(run, 0.95),
        high=compute_change(run, threads / most),
        because=f"{most} threads at half the ideal scaling",
        severity="hint",
    )

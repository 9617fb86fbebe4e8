"""Only one compute thread on a machine with more cores.

Looks at: torch's thread count relative to the cores, a CPU-only model, long steps.
Why: On a CPU large operations scale with threads; one thread leaves the other cores idle.
Remedy: `torch.set_num_threads(cores)`.
Gain: Amdahl on forward + backward with half the ideal scaling.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.evidence.compute_cost import compute_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SCALING = 0.5
"""Share of the passes that scales with the threads. Judgement."""
LEAST_LEFT = 0.95
"""Share of both passes' time that remains for the lowest gain."""


@rule("compute.threads_few", "Too few threads", settings=("threads.torch", "threads.omp_env"))
def check(run: RunContext) -> Advice | None:
    threads, cores = run.count("threads", "torch"), run.cores
    if threads is None or cores is None or run.has_cuda or run.usual is None or len(run.run.ranks) > 1:
        return None
    if (
        threads * 2 > cores
        or run.usual < run.policy.threads_step_seconds
        or run.workers
        or run.setting("threads", "omp_env")
    ):
        return None
    share = run.compute_share
    if share < run.policy.dominant_share:
        return None
    most = int(cores)
    ideal = threads / most
    return Advice(
        title=f"{threads} compute thread{'s'[: threads > 1]} on {units.whole(cores)} cores: "
        f"forward and backward are {units.percent(share)} of the step",
        remedy=f"Let torch use the cores: torch.set_num_threads({most}).",
        change=edits.first_argument(run, "threads", str(most)),
        knobs={"threads.torch": str(most)},
        effect="rounding",
        evidence={"torch_threads": threads, "cores": cores, "compute_share": share},
        gain=Bounds(low=LEAST_LEFT, likely=1.0 - SCALING * (1.0 - ideal), high=ideal).of(
            lambda left: compute_change(run, left)
        ),
        because=f"{most} threads at half the ideal scaling",
        severity="hint",
    )

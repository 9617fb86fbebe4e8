"""More compute threads than cores.

Looks at: torch's threads, workers and ranks on this host against the cores the run may use.
Why: OpenMP threads spin while they wait for each other; with more of them than cores a parallel region
    waits for threads that are not running, and steps get several times longer.
Remedy: `torch.set_num_threads(cores)` or OMP_NUM_THREADS, one per worker and per rank.
Gain: the passes at what the other pass or the model's size says they should take; wide, for it depends on
    how often threads wait for each other.
"""

from __future__ import annotations

from monitor.advice.computing import model_seconds
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving

FORWARD_PER_BACKWARD, BACKWARD_PER_FORWARD = 0.8, 2.2
"""What one pass takes of the other's time at most, as a rule."""
CROWD = 0.1
"""How much longer everything takes for each thread too many on a core."""


@rule(
    "compute.threads_oversubscribed",
    suppresses=("compute.small_batch", "compute.optimizer_unfused"),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    threads, cores = run.count("threads", "torch"), run.cores
    if threads is None or cores is None or run.has_cuda:
        return None
    local = max(1, len(run.run.ranks))
    wanted = threads * local
    if wanted <= 1.25 * cores:
        return None
    share = 1.0 - run.share("data")
    fit = max(1, int(cores) // local)
    excess = wanted / cores
    return Advice(
        title=f"Oversubscribed: {threads} torch threads"
        + (f" in each of {local} ranks" if local > 1 else "")
        + f" on {cores:.0f} cores ({percent(share)} of the step is compute)",
        remedy=f"Use {fit} thread{'s'[: fit > 1]}: OMP_NUM_THREADS={fit}, or torch.set_num_threads({fit}) "
        "at the start.",
        change=f"- torch.set_num_threads({threads})\n+ torch.set_num_threads({fit})",
        evidence={
            "torch_threads": threads,
            "cores": cores,
            "ranks": local,
            "omp_env": run.setting("threads", "omp_env"),
        },
        what=_calm(run, excess, 1.0),
        low=_calm(run, excess, 0.4),
        high=_calm(run, excess, 2.5),
        because=f"{excess:.1f} threads compete for each core",
    )


def _calm(run: RunContext, excess: float, doubt: float) -> Change:
    """Every parallel region waits for threads that have no core: longer with each one too many. Where that
    hits one pass and not the other (backward has a thread of its own), the other one shows what it should
    take; the model's size shows what both should, at most."""
    forward, backward = (run.seconds(phase) for phase in run.forward_phases)
    savings, sure = [], doubt**0.5
    if forward > 0 and backward > 0:
        savings = [
            Saving(run.forward_phases[0], forward - FORWARD_PER_BACKWARD / sure * backward, "threads"),
            Saving("backward", backward - BACKWARD_PER_FORWARD / sure * forward, "threads"),
        ]
        odd = [one for one in savings if one.seconds > 0]
        savings = max(
            odd, _by_size(run, forward, backward), key=lambda them: sum(one.seconds for one in them)
        )
    crowd = min(1.0, 1.6 / doubt) / (1.0 + doubt * CROWD * (excess - 1.0))
    return Change(savings=tuple(savings), everything=crowd)


def _by_size(run: RunContext, forward: float, backward: float) -> list[Saving]:
    """Both passes down to what a model of this size takes, where that is less than half of them."""
    needed = model_seconds(run)
    left = needed / (forward + backward) if needed is not None else 1.0
    if left > 0.5:
        return []
    return [
        Saving(run.forward_phases[0], (1.0 - left) * forward, "threads"),
        Saving("backward", (1.0 - left) * backward, "threads"),
    ]

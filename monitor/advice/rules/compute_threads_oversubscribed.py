"""More compute threads than cores.

Looks at: torch's threads, workers and ranks on this host relative to the cores the run may use.
Why: OpenMP threads spin while they wait for each other; with more of them than cores a parallel region
    waits for threads that are not running, and steps get several times longer.
Remedy: `torch.set_num_threads(cores)` or OMP_NUM_THREADS, one per worker and per rank.
Gain: the passes at the time suggested by the other pass or the model's size; a wide range, since it depends
    on how often threads wait for each other.
"""

from __future__ import annotations

from math import sqrt

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.evidence.compute_cost import model_seconds
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, Saving
from monitor.advice.rule import Advice, rule
from monitor.model import units

FORWARD_PER_BACKWARD, BACKWARD_PER_FORWARD = 0.8, 2.2
"""The most one pass usually takes relative to the other. Judgement."""
CROWD = 0.1
"""How much longer everything takes for each surplus thread per core. Fitted on the scripts of the diagnosis
benchmark, on two cores."""
DOUBT = Bounds(low=0.4, likely=1.0, high=2.5)
"""Factors on the cost of crowding: among scripts with much the same evidence the gain was ×3 to ×17."""
LEAST_CROWD = 1.6
"""For the highest gain, everything shrinks further, to this divided by the doubt."""
BY_SIZE_MOST = 0.5
"""The model's size indicates the passes' time only if that is at most this share of them."""


@rule(
    "compute.threads_oversubscribed",
    "Too many threads",
    settings=("threads.torch", "loader.num_workers"),
    suppresses=("compute.small_batch", "compute.optimizer_unfused"),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    threads, cores = run.count("threads", "torch"), run.cores
    if threads is None or cores is None or run.has_cuda:
        return None
    local = max(1, len(run.run.ranks))
    wanted = threads * local
    if wanted <= run.policy.threads_excess * cores:
        return None
    share = 1.0 - run.share("data")
    fit = max(1, int(cores) // local)
    excess = wanted / cores
    return Advice(
        title=f"Oversubscribed: {threads} torch threads"
        + (f" in each of {local} ranks" if local > 1 else "")
        + f" on {units.whole(cores)} cores ({units.percent(share)} of the step is compute)",
        remedy=f"Use {fit} thread{'s'[: fit > 1]}: OMP_NUM_THREADS={fit}, or torch.set_num_threads({fit}) "
        "at the start.",
        change=edits.first_argument(run, "threads", str(fit))
        or edits.inserted(run, f"torch.set_num_threads({fit})"),
        knobs={"threads.torch": str(fit)},
        effect="rounding",
        evidence={
            "torch_threads": threads,
            "cores": cores,
            "ranks": local,
            "omp_env": run.setting("threads", "omp_env"),
        },
        gain=DOUBT.of(lambda doubt: _without_crowd(run, excess, doubt)),
        because=f"{units.number(excess)} threads compete for each core",
    )


def _without_crowd(run: RunContext, excess: float, doubt: float) -> Change:
    """Every parallel region waits for threads without a core: longer with each surplus one. If that affects
    only one pass (backward has its own thread), the other shows how long it should take; the model's size
    gives an upper bound for both."""
    forward, backward = (run.seconds(phase) for phase in run.forward_phases)
    savings, sure = [], sqrt(doubt)
    if forward > 0 and backward > 0:
        savings = [
            Saving(run.forward_phases[0], forward - FORWARD_PER_BACKWARD / sure * backward, "threads"),
            Saving("backward", backward - BACKWARD_PER_FORWARD / sure * forward, "threads"),
        ]
        odd = [one for one in savings if one.seconds > 0]
        savings = max(
            odd, _by_size(run, forward, backward), key=lambda them: sum(one.seconds for one in them)
        )
    crowd = min(1.0, LEAST_CROWD / doubt) / (1.0 + doubt * CROWD * (excess - 1.0))
    return Change(savings=tuple(savings), everything=crowd)


def _by_size(run: RunContext, forward: float, backward: float) -> list[Saving]:
    """Both passes reduced to what a model of this size takes, if that is less than half of them."""
    needed = model_seconds(run)
    left = needed / (forward + backward) if needed is not None else 1.0
    if left > BY_SIZE_MOST:
        return []
    return [
        Saving(run.forward_phases[0], (1.0 - left) * forward, "threads"),
        Saving("backward", (1.0 - left) * backward, "threads"),
    ]

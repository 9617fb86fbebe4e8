"""One rank is slower than the others, and all wait for it.

Looks at: each rank's own work (everything but the wait in collectives) relative to the median rank; on GPUs,
    the step without the time in which exchange kernels run alone.
Why: A collective ends when the last rank arrives: the slowest rank sets the pace for all.
Remedy: find what differs on that rank: its data, its GPU, its host.
Gain: the step with the straggler as fast as the others.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.ranks import known_by_devices, own_work, widest_phase, without_wait
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.88, likely=0.97, high=1.0)
"""Share of the straggler's extra time that is saved. Judgement: ranks are never quite equal."""

ON_DEVICE = ("forward", "backward", "optimizer")
"""Phases in which a GPU does the work."""


@rule(
    "distributed.straggler",
    "Straggler",
    suppresses=("distributed.imbalance", "distributed.collective_wait", "compute.small_batch", "input.*"),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    work = own_work(run)
    if len(work) < 2 or run.period is None:
        return None
    slowest = max(work, key=lambda rank: work[rank])
    others = sorted(value for rank, value in work.items() if rank != slowest)
    common = others[len(others) // 2]
    cost = work[slowest] - common
    if common <= 0 or work[slowest] < run.policy.straggler_ratio * common:
        return None
    if cost < run.policy.straggler_share * run.period:
        return None
    phase, extra = widest_phase(run, slowest)
    if run.has_cuda and phase in ON_DEVICE and not known_by_devices(run):
        return None  # host time there is launching and waiting, not the rank's own work
    host = next((rank.hostname for rank in run.run.ranks if rank.rank == slowest), None)
    return Advice(
        title=f"Straggler: rank {slowest} needs {units.seconds(work[slowest])} a step where the others need "
        f"{units.seconds(common)}",
        detail=f"{units.seconds(extra)} more than the others in {phase}",
        remedy=f"Look at {phase} on rank {slowest}" + (f" ({host})" if host else "") + ": " + _hint(phase),
        evidence={
            "rank": slowest,
            "phase": phase,
            "own_seconds": work[slowest],
            "common_seconds": common,
            "cost_share": cost / run.period,
            "ranks": len(work),
        },
        gain=SAVED.part_of(without_wait(run, cost)),
        because=f"all {len(work)} ranks wait {units.percent(cost / run.period)} of the step for it",
        rank=slowest,
    )


def _hint(phase: str) -> str:
    if phase == "data":
        return "its shard of the data, its disk, its workers and cores."
    if phase in ("forward", "backward", "optimizer"):
        return (
            "longer sequences or more samples in its shard, a slower or throttled GPU, other jobs on "
            "its cores."
        )
    return "work only this rank does (logging, saving, validating on rank 0)."

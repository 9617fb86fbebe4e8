"""One rank is slower than the others, and all wait for it.

Looks at: per rank the time of its own work (everything but the wait in collectives), rank against the
    median rank.
Why: A collective ends when the last rank arrives: the slowest rank sets the pace for all.
Remedy: find what differs on that rank: its data, its GPU, its host.
Gain: the step with the straggler at the common duration.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.ranks import own_work, widest_phase
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving, scaled


@rule(
    "distributed.straggler",
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
    if common <= 0 or work[slowest] < run.policy.straggler_ratio * common or cost < 0.05 * run.period:
        return None
    phase, extra = widest_phase(run, slowest)
    host = next((rank.hostname for rank in run.run.ranks if rank.rank == slowest), None)
    what = Change(savings=(Saving("*", cost, "straggler"),))
    return Advice(
        title=f"Straggler: rank {slowest} needs {seconds(work[slowest])} a step where the others need "
        f"{seconds(common)}; {seconds(extra)} of it more in {phase}",
        remedy=f"Look at {phase} on rank {slowest}" + (f" ({host})" if host else "") + ": " + _hint(phase),
        change="",
        evidence={
            "rank": slowest,
            "phase": phase,
            "own_seconds": work[slowest],
            "common_seconds": common,
            "cost_share": cost / run.period,
            "ranks": len(work),
        },
        what=scaled(what, 0.97),
        low=scaled(what, 0.88),
        high=what,
        because=f"all {len(work)} ranks wait {percent(cost / run.period)} of the step for it",
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

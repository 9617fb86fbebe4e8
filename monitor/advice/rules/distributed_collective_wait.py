"""The ranks spend much of the step waiting in collectives.

Looks at: time in a phase named for communication, or backward far longer than forward explains, on every
    rank.
Why: Gradients that are exchanged after backward, or in small pieces, or over a slow link, are time in
    which nobody computes.
Remedy: overlap (DDP buckets, `gradient_as_bucket_view`), accumulate with `no_sync()`, compress, or check
    the link.
Gain: half of the exposed communication.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving

NAMES = ("allreduce", "all_reduce", "collective", "comm", "communication", "sync_gradients")


@rule("distributed.collective_wait")
def check(run: RunContext) -> Advice | None:
    if run.run.world_size < 2 or run.period is None:
        return None
    named = next((name for name in NAMES if run.seconds(name) > 0), None)
    phase = named or "backward"
    cost = run.seconds(phase) if named else run.seconds("backward") - 2.5 * run.seconds("forward")
    if cost < 0.15 * run.period:
        return None
    half = Change(savings=(Saving(phase, 0.5 * cost, "comm"),))
    return Advice(
        title=f"Waiting in collectives: about {seconds(cost)} a step ({percent(cost / run.period)}) on all "
        f"{run.run.world_size} ranks",
        remedy="Exchange less often (`model.no_sync()` with accumulation), in larger buckets, or in bf16; "
        "check the link.",
        change="+ with model.no_sync():   # all but the last micro-batch\n      loss.backward()",
        evidence={"wait_seconds": cost, "wait_share": cost / run.period, "world_size": run.run.world_size},
        what=half,
        low=Change(savings=(Saving(phase, 0.1 * cost, "comm"),)),
        high=Change(savings=(Saving(phase, cost, "comm"),)),
        because="if half of the exchange is hidden or left out",
    )

"""Steps stall again and again, and nothing better known explains it.

Looks at: steps several times the usual one, grouped by what they were doing and how regularly they come.
Why: Rare long steps hide in the median and still cost their share of the time.
Remedy: do the periodic work less often, or beside the loop.
Gain: the stalls' share of the time.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving
from monitor.snapshot import Stall

EXPLAINED = ("validate", "checkpoint", "recompile", "gc", "epoch_start")


@rule("trend.periodic_stalls")
def check(run: RunContext) -> Advice | None:
    stalls = [stall for stall in run.run.stalls if stall.kind not in EXPLAINED and stall.count >= 4]
    stall = max(stalls, key=lambda one: one.total_seconds, default=None)
    if stall is None or run.period is None or not run.lead or not run.lead.steps:
        return None
    cost = stall.total_seconds / run.lead.steps
    every = stall.every_steps
    if cost < run.policy.stall_share * run.period or every is None:
        return None
    if stall.count * every < 0.5 * run.lead.steps:
        return None  # they came in one cluster, not with that period all through the run
    spot = run.hot(stall.kind)
    where = f" ({spot.place})" if spot else ""
    part = "data" if stall.kind == "data" else "*"
    return Advice(
        title=f"Stalls every {every:.0f} steps in {stall.kind}{where}: "
        f"{seconds(stall.mean_seconds)} each, "
        f"{percent(cost / run.period)} of the time",
        remedy=_remedy(stall),
        change=f"- if step % {every:.0f} == 0:\n+ if step % {every * 10:.0f} == 0:",
        evidence={
            "kind": stall.kind,
            "every_steps": every,
            "mean_seconds": stall.mean_seconds,
            "count": stall.count,
            "share": cost / run.period,
        },
        what=Change(savings=(Saving(part, 0.9 * cost, "stall"),)),
        low=Change(savings=(Saving(part, 0.4 * cost, "stall"),)),
        high=Change(savings=(Saving(part, cost, "stall"),)),
        because=f"{seconds(cost)} a step, spread over all steps",
    )


def _remedy(stall: Stall) -> str:
    return (
        f"Look for what the loop does every {stall.every_steps:.0f} steps in {stall.kind}; do it less "
        "often or in a thread."
    )

"""Steps stall again and again, and no more specific cause explains it.

Looks at: steps several times as long as usual, grouped by what they were doing and how regularly they occur.
Why: Rare long steps hide in the median and still cost their share of the time.
Remedy: do the periodic work less often, or outside the loop.
Gain: none is promised: the time of the stalls is known, but not whether the training needs what they do.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Caller, callers
from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.run import Stall

LASTING = 0.5
"""The stalls, at their period, must cover this share of the run: otherwise they came in one cluster."""
EPOCH_MATCH = (0.8, 1.25)
"""Stalls come with the epochs if their period is within these factors of an epoch."""
EXPLAINED = ("validate", "checkpoint", "recompile", "gc", "epoch_start", "rollout")
"""Kinds covered by another rule; playing (`rollout`) is what an agent learns from, not a stall."""


@rule("trend.periodic_stalls", "Periodic stalls")
def check(run: RunContext) -> Advice | None:
    stalls = [
        stall
        for stall in run.run.stalls
        if stall.kind not in EXPLAINED and stall.count >= run.policy.stall_count
    ]
    stall = max(stalls, key=lambda one: one.total_seconds, default=None)
    if stall is None or run.period is None or not run.lead or not run.lead.steps:
        return None
    cost = stall.total_seconds / run.lead.steps
    every = stall.every_steps
    if cost < run.policy.stall_share * run.period or every is None:
        return None
    if stall.count * every < LASTING * run.lead.steps:
        return None  # they came in one cluster, not periodically throughout the run
    once = _once_an_epoch(run, stall, every)
    spot = run.hot(stall.kind)
    where = f", around {once.place}" if once else f" ({spot.place})" if spot else ""
    return Advice(
        title=f"Stalls every {units.whole(every)} steps {_phase(stall)}{where}: "
        f"{units.seconds(stall.total_seconds / stall.count)} each, "
        f"{run.of_time(cost / run.period)}",
        remedy=_remedy(stall, once),
        evidence={
            "kind": stall.kind,
            "epoch_line": once.place if once else None,
            "epoch_code": once.code if once else None,
            "every_steps": every,
            "mean_seconds": stall.mean_seconds,
            "count": stall.count,
            "stall_share": cost / run.period,
        },
    )


def _once_an_epoch(run: RunContext, stall: Stall, every: float) -> Caller | None:
    """The line that runs once an epoch, outside the steps, if the stalls come with the epochs: the SDK lists
    first what the loop over the steps iterates."""
    samples, batch = run.count("loader", "dataset_len"), run.batch_size
    epoch = samples / batch if samples and batch else None
    least, most = EPOCH_MATCH
    if stall.kind not in ("between", "data", "other") or (epoch and not least < every / epoch < most):
        return None
    return next(iter(callers(run.setting("per_epoch"))), None)


def _phase(stall: Stall) -> str:
    return {"between": "between the steps", "other": "in your own code"}.get(stall.kind, f"in {stall.kind}")


def _remedy(stall: Stall, once: Caller | None) -> str:
    if once is not None:
        return (
            f"Once an epoch the loop runs `{once.code}` ({once.place}). If that gives the same every time "
            "(reading, parsing, building the data set), do it once before the epochs and reuse it. Keep in "
            "the loop whatever is random or depends on the epoch or on the weights."
        )
    return (
        f"Look for what the loop does every {units.whole(stall.every_steps)} steps {_phase(stall)}; if the "
        "training does not need it each time, do it less often or in a thread."
    )

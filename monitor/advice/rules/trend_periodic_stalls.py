"""Steps stall again and again, and nothing better known explains it.

Looks at: steps several times the usual one, grouped by what they were doing and how regularly they come.
Why: Rare long steps hide in the median and still cost their share of the time.
Remedy: do the periodic work less often, or beside the loop.
Gain: the stalls' share of the time.
"""

from __future__ import annotations

import re

from monitor.advice.context import Caller, RunContext, callers
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
    once = _once_an_epoch(run, stall, every)
    spot = run.hot(stall.kind)
    where = f", around {once.place}" if once else f" ({spot.place})" if spot else ""
    part = "data" if stall.kind == "data" else "*"
    return Advice(
        title=f"Stalls every {every:.0f} steps {_phase(stall)}{where}: "
        f"{seconds(stall.mean_seconds)} each, "
        f"{percent(cost / run.period)} of the time",
        remedy=_remedy(stall, once),
        change=f"+ {once.code}   # once, before the epochs\n  for epoch in …:\n-     {once.code}"
        if once
        else f"- if step % {every:.0f} == 0:\n+ if step % {every * 10:.0f} == 0:",
        evidence={
            "kind": stall.kind,
            "epoch_line": once.place if once else None,
            "epoch_code": once.code if once else None,
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


def _once_an_epoch(run: RunContext, stall: Stall, every: float) -> Caller | None:
    """The line that runs once an epoch beside the steps, when the stalls come with the epochs. A line that
    calls something comes first, and of those one that makes the data."""
    samples, batch = run.count("loader", "dataset_len"), run.batch_size
    epoch = samples / batch if samples and batch else None
    if stall.kind not in ("between", "data", "other") or (epoch and not 0.8 < every / epoch < 1.25):
        return None
    lines = [line for line in callers(run.setting("per_epoch")) if "(" in line.code]
    made = [
        line for line in lines if re.search(r"load|read|open|data|prepare|build", line.code, re.IGNORECASE)
    ]
    return next(iter([*made, *lines]), None)


def _phase(stall: Stall) -> str:
    return {"between": "between the steps", "other": "in your own code"}.get(stall.kind, f"in {stall.kind}")


def _remedy(stall: Stall, once: Caller | None) -> str:
    if once is not None:
        return (
            f"Once an epoch the loop runs `{once.code}` ({once.place}): do what is the same every time "
            "(reading, parsing, building the data set) once before the epochs and reuse it."
        )
    return (
        f"Look for what the loop does every {stall.every_steps:.0f} steps {_phase(stall)}; do it less often "
        "or in a thread."
    )

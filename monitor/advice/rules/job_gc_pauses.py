"""Python's garbage collector takes a noticeable share of the time.

Looks at: time in garbage collection during steps, `gc.collect()` or `empty_cache()` in the loop.
Why: A full collection walks every object; called each step, or triggered by many small objects, it stops
    the loop.
Remedy: remove the explicit call; `gc.freeze()` after set-up, `gc.disable()` and a collect now and then.
Gain: all but a twentieth of that time.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.side import line_job
from monitor.advice.whatif import Change, Saving, scaled

BY_ITSELF = 0.4
"""Python never collects for so large a share of the time unless it is told to, seen or not."""


@rule("job.gc_pauses", suppresses=("compute.user_code", "trend.periodic_stalls"), bonus=0.3)
def check(run: RunContext) -> Advice | None:
    job = line_job(run, "gc")
    cost = min(max(_line_seconds(run), _collector_seconds(run)), 0.995 * (run.period or 0.0))
    if run.period is None or cost < run.policy.gc_share * run.period:
        return None
    what = Change(savings=(Saving("*", run.saved_beyond(cost), "gc"),))
    explicit = job.spot is not None
    certain = explicit or cost > BY_ITSELF * run.period
    where = f" at {job.spot.words}" if job.spot else ""
    return Advice(
        title=f"Garbage collection takes {percent(cost / run.period)} of the time: {seconds(cost)} a "
        f"step{where}",
        remedy=f"Remove the call at {job.spot.place}: memory is given back without it."
        if job.spot
        else "Call `gc.freeze()` after set-up and `gc.disable()` in the loop; collect once an epoch.",
        change=f"- {job.spot.code or 'gc.collect()'}"
        if job.spot
        else "+ gc.freeze(); gc.disable()\n  for batch in loader:",
        evidence={
            "gc_share": cost / run.period,
            "gc_seconds_per_step": cost,
            "explicit_call": explicit,
            **hotlines.evidence(run, job.spot),
        },
        what=scaled(what, 1.0 if certain else 0.9),
        low=scaled(what, 0.98 if certain else 0.6),
        high=scaled(what, 1.0),
        because=f"{seconds(cost)} of {seconds(run.period)} a step is collection",
    )


def _line_seconds(run: RunContext) -> float:
    """Seconds a step at the lines that collect. A collection keeps the interpreter to itself, so part of it
    is seen only when it is over: at the head of the loop, in a phase where nothing is loaded."""
    lines = hotlines.in_loop(run, "gc")
    heads = [
        spot
        for spot in run.hotspots
        if spot.is_loop and any(spot.phase == line.phase and line.share >= 0.3 for line in lines)
    ]
    return hotlines.total(run, lines) + hotlines.total(run, heads)


def _collector_seconds(run: RunContext) -> float:
    """Seconds a step in the collector, from the counter the SDK keeps or from stalls. The counter is of
    the whole run (compilation collects a lot): its share of the whole is what counts."""
    lead, total = run.lead, run.scalar("gc.seconds")
    whole = sum(phase.total_seconds for phase in lead.phases) if lead else 0.0
    if total is not None and whole > 0 and run.period:
        return run.period * min(1.0, total / whole)
    stall = run.stall("gc")
    return stall.total_seconds / lead.steps if stall and lead and lead.steps else 0.0

"""Python's garbage collector takes a noticeable share of the time.

Looks at: time in garbage collection during steps, `gc.collect()` or `empty_cache()` in the loop.
Why: A full collection walks every object; called every step, or triggered by many small objects, it stops the
    loop.
Remedy: remove the explicit call; `gc.freeze()` after set-up, `gc.disable()` and an occasional collect.
Gain: all but a twentieth of that time.
"""

from __future__ import annotations

from monitor.advice.context.figures import MOST_OF_STEP
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits, hot_lines
from monitor.advice.evidence.side_jobs import side_job
from monitor.advice.prediction.gain import Bounds, Outcomes
from monitor.advice.prediction.step_model import saved
from monitor.advice.rule import Advice, rule
from monitor.model import units

BY_ITSELF = 0.4
"""Python never collects for this large a share of the time unless the script asks for it, seen or not."""
CALL_SAVED, COLLECTOR_SAVED = Bounds(low=0.98, likely=1.0, high=1.0), Bounds(low=0.6, likely=0.9, high=1.0)
"""Share of the collections that is saved: for explicit ones, and for Python's own. Judgement."""
ALL_OF_PHASE = 0.95
"""A phase of which collections take this share is all theirs: what they find is freed, and lists are cleared,
after the collector has said that it is done. Judgement."""
SEEN_SHARE = 0.3
"""If lines that collect take this share of a phase, the head of the loop there is part of it."""


@rule(
    "job.gc_pauses",
    "Garbage collection",
    suppresses=("compute.user_code", "compute.launch_bound", "trend.periodic_stalls"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    job = side_job(run, "", "gc")
    cost = min(max(_line_seconds(run), _collector_seconds(run)), MOST_OF_STEP * (run.period or 0.0))
    if run.period is None or cost < run.policy.gc_share * run.period:
        return None
    explicit = job.spot is not None
    whole = max(cost, _phase_seconds(run, cost))
    gone = CALL_SAVED if explicit or cost > BY_ITSELF * run.period else COLLECTOR_SAVED
    where = f" at {job.spot.text}" if job.spot else ""
    return Advice(
        title=f"Garbage collection takes {run.of_time(cost / run.period)}: "
        f"{units.seconds(cost)} a step{where}",
        remedy=f"Remove the call at {job.spot.place}: memory is given back without it."
        if job.spot
        else "Call `gc.freeze()` after set-up and `gc.disable()` in the loop; collect once an epoch.",
        change=edits.removed(job.spot.file, job.spot.line, job.spot.code)
        if job.spot and job.spot.removable
        else "",
        knobs={"gc.collect": "off"} if explicit else {"gc.freeze": "on"},
        effect="identical",
        price="memory that is only freed when Python collects on its own",
        evidence={
            "gc_share": cost / run.period,
            "gc_seconds_per_step": cost,
            "explicit_call": explicit,
            **hot_lines.evidence(run, job.spot),
        },
        gain=Outcomes(
            low=saved("*", gone.low * cost, "gc"),
            likely=saved("*", gone.likely * whole, "gc"),
            high=saved("*", gone.high * max(whole, run.cost_with_neighbours(cost)), "gc"),
        ),
        because=f"{units.seconds(cost)} of {units.seconds(run.period)} a step is collection",
    )


def _phase_seconds(run: RunContext, cost: float) -> float:
    """Seconds per step of the phase that is nearly all collection; 0 if there is none."""
    most = MOST_OF_STEP * (run.period or 0.0)
    found = (seconds for seconds in run.phases.values() if ALL_OF_PHASE * seconds <= cost <= seconds)
    return min(most, max(found, default=0.0))


def _line_seconds(run: RunContext) -> float:
    """Seconds per step at the lines that collect. A collection holds the interpreter, so part of it is only
    sampled once it is over: at the head of the loop, in a phase where nothing is loaded."""
    lines = hot_lines.doing(run, "gc")
    heads = [
        spot
        for spot in run.hotspots
        if spot.head and any(spot.phase == line.phase and line.share >= SEEN_SHARE for line in lines)
    ]
    return hot_lines.total(run, lines) + hot_lines.total(run, heads)


def _collector_seconds(run: RunContext) -> float:
    """Seconds per step in the collector, from the SDK's counter or from stalls. The counter is of all steps
    but those that warm up, in which compilation collects a lot."""
    lead, total = run.lead, run.scalar("gc.seconds")
    counted = lead.steps - lead.warmup_steps if lead else 0
    if total is not None and counted > 0 and run.period:
        return min(run.period, total / counted)
    stall = run.stall("gc")
    return stall.total_seconds / lead.steps if stall and lead and lead.steps else 0.0

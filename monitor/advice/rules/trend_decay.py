"""Throughput falls over the run.

Looks at: step time of the run's later windows relative to its earlier ones, and what changed along with it.
Why: A run that gets slower has something that grows: a list, a graph kept alive, a cache, memory, heat.
    The average hides it.
Remedy: find what grows: the phase, the memory or the clock that changed with it points to it.
Gain: back to the best sustained speed.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.evidence.trends import Decay, decay
from monitor.advice.prediction.gain import Bounds, speedup
from monitor.advice.rule import Advice, rule
from monitor.model import units

DOUBT = Bounds(low=0.4, likely=1.0, high=1.8)
"""Factors on the gain of going from the mean step back to the early one. Judgement."""


@rule(
    "trend.decay",
    "Throughput decay",
    suppresses=("compute.user_code", "compute.small_batch", "compute.python_loop"),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    found = decay(run)
    if found is None:
        return None
    spot = _grower(run, found.phase)
    keeper = hot_lines.keeping_line(run)
    gain = max(1.0, (run.period or found.late) / found.early)
    return Advice(
        title=f"Throughput decays: steps took {units.seconds(found.early)} early and "
        f"{units.seconds(found.late)} now"
        + (f", the growth is in {_where(run, found.phase)}" if found.phase else ""),
        detail="; ".join([*found.moved, *([f"most of it in {spot.text}"] if spot else [])]),
        remedy=_remedy(found)
        + (f" Start at {spot.place}." if spot else "")
        + (f" `{keeper.code}` ({keeper.place}) keeps something of every step." if keeper else ""),
        effect="identical",
        evidence={
            "early_step_seconds": found.early,
            "late_step_seconds": found.late,
            "throughput_ratio": found.early / found.late,
            "phase": found.phase,
            **found.evidence,
            **hot_lines.evidence(run, spot),
        },
        speedup=speedup(
            1.0 + DOUBT.low * (gain - 1.0),
            gain,
            1.0 + DOUBT.high * (gain - 1.0),
            f"if the early speed held; it is {units.percent(found.early / found.late)} of that now",
        ),
        share=1.0 - 1.0 / gain,
        severity="warning",
    )


def _where(run: RunContext, phase: str) -> str:
    if phase == "between":
        return "your own code between the steps"
    if phase == "other":
        return "your own code in the step" if run.seconds("forward") else "forward and your own code"
    return f"the phase {phase}"


def _grower(run: RunContext, phase: str | None) -> Hotspot | None:
    """The heaviest line of the phase that is not just a pass of the step."""
    spots = [spot for spot in run.hotspots if phase and spot.phase == phase]
    own = [spot for spot in spots if not (spot.kind == "module" or hot_lines.passes(run, spot))]
    return next(iter([*own, *spots]), None)


def _remedy(found: Decay) -> str:
    if found.phase == "data":
        return (
            "The loader slows down: look for lists that grow in the data set or its workers, and for "
            "the page cache."
        )
    if found.phase == "backward":
        return (
            "Backward grows: a graph is kept from step to step (retain_graph, a state or loss not detached)."
        )
    return (
        "Something in the loop grows with the steps: a list that is walked or a tensor that is extended "
        "every step."
    )

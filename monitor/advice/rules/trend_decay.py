"""Throughput falls over the run.

Looks at: step time of the run's later windows against its earlier ones, and what moved along with it.
Why: A run that gets slower has something that grows: a list, a graph kept alive, a cache, memory, heat.
    The average hides it.
Remedy: find what grows: the phase, the memory or the clock that moved along names it.
Gain: back to the best sustained speed.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import Hotspot, RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.trends import Decay, decay
from monitor.snapshot import Speedup


@rule(
    "trend.decay",
    suppresses=("compute.user_code", "compute.small_batch", "compute.python_loop"),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    found = decay(run)
    if found is None:
        return None
    spot = _grower(run, found.phase)
    where = f"; the line that takes most of it: {spot.words}" if spot else ""
    keeper = hotlines.keeper(run)
    gain = max(1.0, (run.period or found.late) / found.early)
    return Advice(
        title=f"Throughput decays: steps took {seconds(found.early)} early and {seconds(found.late)} now"
        + (f", the growth is in {_where(run, found.phase)}" if found.phase else "")
        + found.along
        + where,
        remedy=_remedy(found)
        + (f" Start at {spot.place}." if spot else "")
        + (f" `{keeper.code}` ({keeper.place}) keeps something of every step." if keeper else ""),
        change=f"- {keeper.code if keeper else 'history.append(loss)'}   # grows with every step\n"
        "+ # keep a number (loss.item()), the last N only, or a running mean",
        evidence={
            "early_step_seconds": found.early,
            "late_step_seconds": found.late,
            "throughput_ratio": found.early / found.late,
            "phase": found.phase,
            **found.evidence,
            **hotlines.evidence(run, spot),
        },
        speedup=Speedup(
            round(1 + 0.4 * (gain - 1), 3),
            round(gain, 3),
            round(1 + 1.8 * (gain - 1), 3),
            f"the early speed held, against {percent(found.early / found.late)} of it now",
        ),
        severity="warning",
    )


def _where(run: RunContext, phase: str) -> str:
    if phase == "between":
        return "your own code between the steps"
    if phase == "other":
        return "your own code in the step" if run.seconds("forward") else "forward and your own code"
    return f"the phase {phase}"


def _grower(run: RunContext, phase: str | None) -> Hotspot | None:
    """The heaviest line of the phase that is not simply a pass of the step."""
    spots = [spot for spot in run.hotspots if phase and spot.phase == phase]
    own = [spot for spot in spots if not (spot.kind == "module" or hotlines.passes(spot.code))]
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

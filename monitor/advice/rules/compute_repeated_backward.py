"""Several backward passes go through one graph in every step.

Looks at: `backward(retain_graph=True)` in a loop over losses or several times in a row, with nothing in
    between that reads or clears gradients; how often it is called a step.
Why: Each pass goes back through all that the losses have in common. Gradients add up, so one pass for the
    sum of the losses gives the same ones and goes through it once.
Remedy: `sum(losses).backward()`.
Gain: all passes but one, less what each loss has of its own.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.evidence.compute_cost import backward_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SHARED = Bounds(low=0.4, likely=0.8, high=1.0)
"""Share of the superfluous passes that is saved: what the losses have in common. Judgement."""
LEAST_PASSES = 1.5
"""A loop over losses that has one loss in most steps repeats nothing."""


@rule("compute.repeated_backward", "Repeated backward passes", bonus=0.3)
def check(run: RunContext) -> Advice | None:
    found = [spot for spot in run.hotspots if spot.phase == "backward" and spot.repeats]
    spot = max(found, key=run.hot_seconds, default=None)
    if spot is None or run.period is None:
        return None
    passes = float(spot.repeats) if spot.repeats > 1 else spot.calls or 0.0
    part = min(1.0, sum(one.share for one in found))
    cost = part * run.seconds("backward")
    gone = 1.0 - 1.0 / passes if passes >= LEAST_PASSES else 0.0
    if gone * cost < run.policy.phase_share * run.period:
        return None
    return Advice(
        title=f"{units.whole(passes)} backward passes through one graph in every step: {spot.text}, "
        f"{units.seconds(cost)} ({units.percent(cost / run.period)})",
        remedy=f"Add up the losses and go back once: `sum(losses).backward()` instead of {spot.place}. "
        "Gradients add up either way, and `retain_graph=True` is no longer needed.",
        effect="rounding",
        avoid="Adding up where something reads or changes the gradients of a single loss, as weighting or "
        "projecting them does.",
        evidence={"passes_per_step": passes, "backward_seconds": cost, **hot_lines.evidence(run, spot)},
        gain=SHARED.of(lambda shared: backward_change(run, shared * gone * part, "passes")),
        because=f"{units.whole(passes)} passes become one",
    )

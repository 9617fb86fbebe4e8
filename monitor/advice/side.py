"""Side jobs of the training loop: logging, norms, validation, checkpoints, copies, user code.

A side job shows up as a phase of its own, as hot lines in other phases, or as both; this adds them
up without counting a second twice, and turns "do it less often" into a change of the step model.
"""

from __future__ import annotations

from dataclasses import dataclass

from monitor.advice import hotlines
from monitor.advice.context import Hotspot, RunContext
from monitor.advice.whatif import Change, Saving


@dataclass(frozen=True, slots=True)
class Side:
    """What one side job costs a step, where, and how often it happens."""

    seconds: float
    share: float
    savings: tuple[Saving, ...]
    spot: Hotspot | None
    every: float | None
    """Steps between two of them; None when not known or not periodic."""
    each: float | None
    """Seconds one of them takes."""
    count: int = 0
    """How often it happened so far; 0 when not counted."""

    @property
    def every_step(self) -> bool:
        """Seen only as lines of the loop, in steps like any other."""
        return self.every is None and self.count == 0 and self.spot is not None

    def less(self, factor: float) -> Change:
        """The change when only `1 - factor` of it is left."""
        return Change(
            savings=tuple(Saving(one.part, one.seconds * factor, one.cause) for one in self.savings)
        )


def side_job(run: RunContext, phase: str, *kinds: str) -> Side:
    """The phase itself plus hot lines of these kinds in the other phases of the loop."""
    lines = [spot for spot in hotlines.in_loop(run, *kinds) if spot.phase != phase]
    savings = [Saving(phase, run.seconds(phase), phase)] if run.seconds(phase) > 0 else []
    savings += [Saving(spot.phase, run.hot_seconds(spot), spot.place) for spot in lines]
    total = sum(saving.seconds for saving in savings)
    beside = run.saved_beyond(total) - total
    savings += [Saving("*", beside, f"beside {phase}")] if beside > 0 else []
    stall = run.stall(phase)
    spot = max([*filter(None, [run.hot(phase)]), *lines], key=run.hot_seconds, default=None)
    return Side(
        seconds=total,
        share=total / run.period if run.period else 0.0,
        savings=tuple(savings),
        spot=spot,
        every=_every(run, phase, stall.count if stall else 0, stall.every_steps if stall else None),
        each=stall.mean_seconds if stall else None,
        count=stall.count if stall else 0,
    )


def _every(run: RunContext, phase: str, count: int, periodic: float | None) -> float | None:
    if periodic is not None:
        return periodic
    steps = run.lead.steps if run.lead else 0
    return steps / count if count and steps else None


def line_job(run: RunContext, *kinds: str) -> Side:
    """Hot lines of these kinds only."""
    lines = hotlines.in_loop(run, *kinds)
    savings = tuple(Saving(spot.phase, run.hot_seconds(spot), spot.place) for spot in lines)
    total = sum(saving.seconds for saving in savings)
    share = total / run.period if run.period else 0.0
    return Side(total, share, savings, lines[0] if lines else None, None, None)

"""Work outside the actual training: its full cost, how often it is done, whether steps need it.

One mechanism for logging, norms, validation, checkpoints, copies and metrics. A job consists of its own
phase, of pieces of the loop's work that no step is known to need (judged by the library functions they call
or where their results go), and of single lines that call such a function inside other work. Nothing is
counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.context.work import Work
from monitor.advice.evidence import edits, hot_lines
from monitor.advice.prediction.step_model import Change, Saving
from monitor.model import units
from monitor.model.finding import Effect

EVERY_STEP = 1.5
"""Fewer steps than this between two occurrences means every step."""
MOST_BESIDE = 2.6
"""The most that a job was seen to cost by the wall clock, as a multiple of its own time: saves that are
written to the disk during the steps after them. 1.9 of a validation pass, which leaves the caches cold."""
READ = "sync"
"""The job of a line that reads a value out of a tensor."""
LESS_OFTEN = 100
"""One record per this many steps tells as much as one per step. Judgement."""


@dataclass(frozen=True, slots=True)
class SideJob:
    """What a side job costs per step, where, and how often it happens."""

    seconds: float
    share: float
    savings: tuple[Saving, ...]
    spot: Hotspot | None
    """Its heaviest line."""
    work: Work | None
    """Its heaviest piece of work."""
    every: float | None
    """Steps between two occurrences; None if unknown or not periodic."""
    each: float | None
    """Seconds per occurrence, with the work beside the phase."""
    count: int = 0
    """How often it has happened so far; 0 if not counted."""
    beside: float = 0.0
    """Seconds per step by which other steps exceed the median. The job may slow its neighbours, but any noise
    looks the same, so this only counts for the highest gain."""

    @property
    def every_step(self) -> bool:
        """Seen only as lines of the loop, in ordinary steps."""
        seen = self.spot is not None or self.work is not None
        return self.count == 0 and seen and (self.every is None or is_every_step(self.every))

    @property
    def change(self) -> Change:
        """The step without it."""
        return Change(savings=self.savings)

    @property
    def most(self) -> Change:
        """The step without it, and without what it may cost its neighbours."""
        return Change(savings=(*self.savings, Saving("*", self.beside, "beside it")))

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Steps between two occurrences, and seconds per occurrence; None if unknown."""
        if self.every_step:
            return 1.0, self.seconds
        each = self.seconds * self.every if self.each is None and self.every else self.each
        return self.every, each

    @property
    def where(self) -> str:
        """ " at `print(loss)` (train.py:7)"; the heaviest line, else the piece of work."""
        place = self.spot or self.work
        return f" at {place.text}" if place else ""

    @property
    def site(self) -> str:
        """ " at train.py:7", where the loop calls it."""
        place = self.work or self.spot
        return f" at {place.place}" if place else ""

    @property
    def less_often(self) -> int:
        """A sufficient number of steps between two occurrences."""
        return self.interval_of(round(LESS_OFTEN * max(1.0, self.every or 1.0)))

    def interval_of(self, wanted: int) -> int:
        """The nearest number of steps to this one at which its lines can run: they may be under a test for
        multiples already."""
        within = self.work.within if self.work is not None else 1
        return wanted if wanted % within == 0 else max(2, round(wanted / within)) * within

    @property
    def effect(self) -> Effect | None:
        """What doing it less often does to the training; None if it is unknown who uses its result."""
        if self.work is None or self.work.needed == "unknown":
            return None
        if self.work.needed == "yes":
            return "changes_training"
        return "in_expectation" if self.work.random or self.work.module else "identical"

    def guarded(self, every: int) -> str:
        """Its lines under `if step % every == 0:`, if that can be written."""
        return edits.guarded(self.work, every)


def is_every_step(every: float | None) -> bool:
    return every is not None and every < EVERY_STEP


def often(every: float | None, unknown: str) -> str:
    """ "every step", "every 50 steps"; `unknown` if it is not periodic."""
    if not every:
        return unknown
    return "every step" if is_every_step(every) else f"every {units.whole(every)} steps"


def side_job(run: RunContext, phase: str, *jobs: str, also: tuple[str, ...] = ()) -> SideJob:
    """The phase itself (none if ""), work with these jobs in the loop's other phases and those in `also`, and
    such lines inside other work. What is shown of it is part of what is counted."""
    counted = (phase, *hot_lines.PHASES_OF_LOOP, *also)
    pieces = [one for one in run.work if one.job in jobs and one.needed != "yes" and one.phase in counted]
    beside = [one for one in pieces if one.phase != phase]
    own = {(one.file, one.line) for one in pieces}
    claimed = {(one.file, one.line) for one in run.work if one.job and one.needed != "yes"}
    lines = [
        spot
        for spot in hot_lines.doing(run, *jobs, phases=counted)
        if spot.phase != phase and spot.piece not in claimed and not _gives_value(run, spot)
    ]
    within = [one for one in run.work if one.phase == phase]
    spent = max(0.0, run.seconds(phase) - sum(run.hot_seconds(one) for one in within if one.feeds))
    savings = [Saving(phase, spent, phase)] if spent > 0 else []
    savings += [Saving(one.phase, run.hot_seconds(one), one.place) for one in beside]
    savings += [Saving(one.phase, run.hot_seconds(one), one.place) for one in lines]
    total = sum(saving.seconds for saving in savings)
    work = max((*pieces, *(one for one in within if not one.feeds)), key=run.hot_seconds, default=None)
    spots = [spot for spot in run.hotspots if spot.piece in own and spot.phase in counted]
    spot = max([*filter(None, [run.hot(phase)]), *spots, *lines], key=run.hot_seconds, default=None)
    stall = run.stall(phase)
    every = _every(run, stall.count if stall else 0, stall.every_steps if stall else None, work)
    return SideJob(
        seconds=total,
        share=total / run.period if run.period else 0.0,
        savings=tuple(savings),
        spot=spot,
        work=work,
        every=every,
        each=stall.mean_seconds + (total - spent) * (every or 1.0)
        if stall and stall.mean_seconds is not None
        else None,
        count=stall.count if stall else 0,
        beside=max(0.0, run.cost_with_neighbours(total, MOST_BESIDE) - total) if phase else 0.0,
    )


def _gives_value(run: RunContext, spot: Hotspot) -> bool:
    """Reads a value inside work that a step needs: an action, a length, a choice. Then the read is needed."""
    piece = run.piece(spot)
    return spot.job == READ and piece is not None and piece.needed == "yes"


def _every(run: RunContext, count: int, periodic: float | None, work: Work | None) -> float | None:
    if periodic is not None:
        return periodic
    steps = run.lead.steps if run.lead else 0
    if count and steps:
        return steps / count
    return work.every if work is not None else None

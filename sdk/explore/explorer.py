"""Looks for settings that make a running training faster, one after the other, and keeps what helps.

Each is switched on and off in blocks of steps; one that is clearly faster stays on, and the next is tried
beside it. Then all that stayed are compared with none, in new blocks, and again later: what is not faster any
more is switched off. A setting that fails is switched off too, and the training goes on.

Settings that were verified beforehand are in force before the first step, and compared with none once the run
is long enough to afford the slow blocks.
"""

from __future__ import annotations

import math
import statistics
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..knobs.catalog import KNOBS
from ..knobs.knob import APPLIED, REFUSED, Flip, Outcome, Place, attempt
from .candidates import live_candidates
from .comparison import LEAST_PAIRS, SETTLE, Comparison, Gain

FIRST_STEP = 12
"""Warm-up is over."""
MEASURED = 20
"""Steps before the first block: how long is a step, and what does the script do that could be changed?"""
SEEN_SECONDS = 2.0
"""A choice: given settings are called slower than none after so long at the earliest; a busy moment is not
their fault."""
BLOCK_SECONDS, LEAST_STEPS, MOST_STEPS = 0.25, 8, 100
"""A choice: how long a block is."""
CHECK_SHARE = 0.03
"""A choice: given settings are compared with none when the fewest blocks without them take at most this share
of the time so far. A comparison that a short run cannot afford would cost it most of the gain."""
AGAIN = 10
"""A choice: when the training has made so many times the steps it had, what stayed is compared again."""


class Candidate(NamedTuple):
    """A setting that may be switched."""

    label: str
    outcome: Outcome
    flip: Flip | None

    @property
    def useful(self) -> bool:
        return self.flip is not None and self.outcome.state == APPLIED


def candidate(place: Place, name: str, value: str) -> Candidate:
    """Of a search: switched off at first."""
    knob, outcome = KNOBS[name], Outcome("nothing to change")
    return Candidate(
        f"{name}={value}", outcome, attempt(outcome, lambda: knob.live(place, knob.read(value), outcome))
    )


class Explorer:
    """The search of one process: told of every optimizer that has stepped."""

    def __init__(
        self,
        torch: Any,
        steps: Callable[[], int],
        given: Sequence[Candidate] | None = None,
        tell: Callable[[dict[str, Any]], None] = lambda found: None,
        before: float | None = None,
    ) -> None:
        self._tell = tell
        self._before = before or 0.0
        """Seconds of a step without the given settings, when they were verified."""
        self._ran = self._usual = 0.0
        """Seconds so far, and of a usual step at the beginning."""
        self._place = Place(torch, steps, self._known)
        self._given = given
        """Not searched: these are in force already, and compared with none later."""
        self._optimizers: list[weakref.ref[Any]] = []
        self._last_step, self._last_ns = -1, 0
        self._first: list[float] = []
        self._candidates = given or ()
        self._length = self._again = 0
        self._search: Iterator[Comparison] = iter(())
        self._now: Comparison | None = None
        self._kept: dict[str, Flip] = {}
        self._trouble = Outcome("")
        self.tried: list[dict[str, Any]] = []
        """What was compared: the setting, pairs of blocks, gain."""
        self.together: Gain | None = None
        """What all that stayed brings, by the last comparison with none."""
        self.notes: list[str] = []
        """What a user should know of: settings that failed or were given up."""

    def _known(self) -> list[Any]:
        return [one for ref in self._optimizers if (one := ref()) is not None]

    def told(self) -> dict[str, Any]:
        """What it has found, for a file."""
        self._keep_given()
        return {
            "stays": list(self._kept), "tried": self.tried, "notes": self.notes,
            "together": list(self.together) if self.together is not None else None,
        }  # fmt: skip

    # ── steps ──

    def stepped(self, optimizer: Any, now: int) -> None:
        """An optimizer has stepped. The first one in a step ends a period."""
        if self._trouble.state == REFUSED:
            return
        if all(one is not optimizer for one in self._known()):
            self._optimizers.append(weakref.ref(optimizer))
        step = self._place.steps()
        if step == self._last_step:
            return
        seconds, follows = (now - self._last_ns) / 1e9, step == self._last_step + 1
        self._last_step, self._last_ns = step, now
        if follows and step >= FIRST_STEP:
            attempt(self._trouble, self._period, seconds)
            if self._trouble.state == REFUSED:
                self._give_up()

    def _give_up(self) -> None:
        """Something has raised: everything is taken back, and the training goes on as it was."""
        self._keep_given()
        self.notes.append(f"{self._trouble.why}; every setting was taken back")
        for flip in (*([self._now.stop] if self._now is not None else []), lambda: self._switch(False)):
            attempt(self._trouble, flip)
        self._take_back()

    def _period(self, seconds: float) -> None:
        self._ran += seconds
        if not self._first and self._given is None:
            self._candidates = [candidate(self._place, *one) for one in live_candidates(self._place)]
        if len(self._first) < MEASURED or (self._given is not None and self._ran < SEEN_SECONDS):
            self._first.append(seconds)
        elif not self._length:
            self._keep_given()
            self._usual = statistics.median(self._first)
            wanted = math.ceil(BLOCK_SECONDS / max(self._slow_step(), 1e-6))
            self._length = max(LEAST_STEPS, min(MOST_STEPS, wanted))
            self._begin(self._all())
        elif self._now is None and self._kept and self._last_step >= self._again and self._affords_check():
            self._begin(self._check())
        elif self._now is not None and self._now.step(seconds):
            self._now = next(self._search, None)
            self._tell(self.told())

    def _keep_given(self) -> None:
        """What is given stays, as soon as the script does what it changes."""
        for one in self._given or ():
            if one.flip is not None and one.useful:
                self._kept[one.label] = one.flip

    def _take_back(self) -> None:
        self._kept, self._given = {}, None if self._given is None else ()

    def _slow_step(self) -> float:
        """Seconds of a step without the settings, as far as is known."""
        return max(self._before, self._usual)

    def _affords_check(self) -> bool:
        """A search has paid for its blocks already. Given settings that seem slower than none are checked
        whatever that costs."""
        if self._given is None or 0.0 < self._before < self._usual:
            return True
        return CHECK_SHARE * self._ran >= LEAST_PAIRS * (self._length + SETTLE) * self._slow_step()

    def _begin(self, search: Iterator[Comparison]) -> None:
        self._search = search
        self._now = next(search, None)

    # ── the search: each `yield` is a comparison, what follows it runs when that is over ──

    def _all(self) -> Iterator[Comparison]:
        if self._given is not None:
            return
        for one in self._candidates:
            if one.flip is not None and one.useful:
                yield from self._try(one.label, one.flip)
        yield from self._check()

    def _try(self, label: str, flip: Flip) -> Iterator[Comparison]:
        comparison = Comparison(flip, self._length)
        yield comparison
        gain = comparison.gain()
        self.tried.append({"setting": label, "pairs": comparison.pairs, "gain": list(gain) if gain else None})
        if gain is not None and gain.gains:
            self._kept[label] = flip
            flip(True)

    def _check(self) -> Iterator[Comparison]:
        """All that stayed against none of it: what is not faster any more goes."""
        self._keep_given()
        if not self._kept:
            return
        self._switch(False)
        comparison = Comparison(self._switch, self._length)
        yield comparison
        self.together = comparison.gain()
        if self.together is not None and self.together.gains:
            self._switch(True)
            self._again = AGAIN * self._last_step
        else:
            self.notes.append(f"{' '.join(self._kept)}: not clearly faster, taken back")
            self._take_back()

    def _switch(self, on: bool) -> None:
        flips = list(self._kept.values())
        for flip in flips if on else reversed(flips):
            flip(on)

"""How critical a place of the loop is: how much of a short delay put there the steps become longer.

1: a second saved there is a second won. 0: it is hidden behind the device, the loader or another rank. It
holds for small changes: a delay larger than what hides it becomes critical, so it bounds a gain and does not
size it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from monitor.model import phase_names
from monitor.model.units import slope, whole

CLEAR = 0.1
"""A choice: the standard error below which a slope is known."""
HIDDEN, CRITICAL = 0.25, 0.75
"""Choices: below the one a place is called hidden, above the other critical."""
NAMES = {"data": "behind the wait for a batch", "backward": "before the backward pass",
         "optimizer": "behind the update"}  # fmt: skip
HEADING = "Criticality (1: a second saved there is a second won; 0: it is hidden behind something else)"

Judgement = Literal["critical", "partly hidden", "hidden", "not clear", "not known"]


class Criticality(Struct, frozen=True):
    """Of one place."""

    place: str
    delays: int
    seconds: float
    """All delays in this place together."""
    slope: float | None = None
    """None: too few delays to tell. So are the next two."""
    error: float | None = None
    """Standard error of the slope."""
    margin: float | None = None
    """The slope is within this of the truth in 19 of 20 cases."""
    more_steps: int | None = None
    """About so many more steps would tell; None: it is known, or nothing can be said."""

    @property
    def judgement(self) -> Judgement:
        if self.slope is None or self.error is None:
            return "not known"
        if self.error > CLEAR:
            return "not clear"
        return "critical" if self.slope > CRITICAL else "hidden" if self.slope < HIDDEN else "partly hidden"

    @property
    def most(self) -> float:
        """Of a second saved there, the most that can be won; 1 where that is not clear."""
        judgement = self.judgement
        if judgement in ("not clear", "not known") or self.slope is None or self.margin is None:
            return 1.0
        if judgement == "hidden" and self.slope <= self.margin:
            return 0.0
        return min(1.0, max(0.0, self.slope + self.margin))

    @property
    def words(self) -> tuple[str, str, str]:
        """The place, the slope and what that means."""
        doubt = self.judgement in ("not clear", "not known") and self.more_steps
        more = f": about {whole(self.more_steps)} more steps would tell" if doubt else ""
        found = f"{whole(self.delays)} delays"
        if self.slope is not None and self.margin is not None:
            found = slope(self.slope, self.margin)
        return NAMES.get(self.place, f"in {phase_names.phase(self.place)}"), found, self.judgement + more


def rows(found: Sequence[Criticality]) -> list[tuple[str, str, str]]:
    """The most critical place first, what is not known last."""
    ordered = sorted(found, key=lambda one: (one.slope is None, -(one.slope or 0.0)))
    return [one.words for one in ordered]

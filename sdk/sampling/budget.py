"""What sampling and profiling may cost: a small share of the run's time, with every cost counted."""

from __future__ import annotations

SHARE = 0.005
"""Chosen: half a percent of the time, so that profiling never makes a run slow."""
LOOKUP_SHARE = 0.001
"""Chosen: looking samples up waits until it is a thousandth of the run so far. It can: a run that ends first
does it at its end."""
FIRST_NS = 50_000_000
"""Chosen: what sampling may spend before a run has earned its share; without the first windows and their
profile, a short run would have no diagnosis."""


class Budget:
    """CPU nanoseconds spent so far, against what a run of this age may spend."""

    def __init__(self, began_ns: int) -> None:
        self._began = began_ns
        self.spent_ns = 0

    def left_ns(self, now: int) -> int:
        """What may be spent now; negative if too much was spent."""
        return FIRST_NS + int((now - self._began) * SHARE) - self.spent_ns

    def allows(self, now: int, expected_ns: int) -> bool:
        return self.left_ns(now) >= expected_ns

    def has_earned(self, now: int, expected_ns: int) -> bool:
        """The same for looking samples up."""
        return (now - self._began) * LOOKUP_SHARE >= expected_ns and self.allows(now, expected_ns)

    def spend(self, ns: int) -> None:
        self.spent_ns += ns

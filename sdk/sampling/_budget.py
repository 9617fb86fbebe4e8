"""What sampling and profiling may cost: a small share of the run's time, all of it counted."""

from __future__ import annotations

SHARE = 0.005
"""A choice: half a percent of the time, so that a profile is never what makes a run slow."""
FIRST_NS = 50_000_000
"""A choice: what sampling may spend before a run is old enough for its share: without the first windows and
their profile a short run has no diagnosis."""


class Budget:
    """Nanoseconds of CPU spent so far against those a run of this age may have spent."""

    def __init__(self, began_ns: int) -> None:
        self._began = began_ns
        self.spent_ns = 0

    def left_ns(self, now: int) -> int:
        """What may be spent now; below zero when too much was."""
        return FIRST_NS + int((now - self._began) * SHARE) - self.spent_ns

    def allows(self, now: int, expected_ns: int) -> bool:
        return self.left_ns(now) >= expected_ns

    def has_earned(self, now: int, expected_ns: int) -> bool:
        """The same for what can wait: a run that ends earlier does it at its end."""
        return self.left_ns(now) - FIRST_NS >= expected_ns

    def spend(self, ns: int) -> None:
        self.spent_ns += ns

"""Past runs, for the history screen: from a daemon's API or, without one, from the store itself."""

from __future__ import annotations

from typing import NamedTuple

from monitor.snapshot import Finding, Run


class Realised(NamedTuple):
    """One entry of the ledger: what a finding promised and what the change brought."""

    before: str
    after: str
    low: float
    likely: float
    high: float
    realised: float

    @property
    def inside(self) -> bool:
        return self.low <= self.realised <= self.high


class Archive:
    """Nothing recorded: the base of the real ones, and what tests without history use."""

    why_empty = "no history: there is neither a daemon nor a store"

    def runs(self) -> list[Run]:
        return []

    def ledger(self, finding: Finding) -> list[Realised]:
        return []

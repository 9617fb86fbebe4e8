"""Past runs, for the history screen: from a daemon's API or, without one, from the store itself."""

from __future__ import annotations

from monitor.snapshot import Run


class Archive:
    """Nothing recorded: the base of the real ones, and what tests without history use."""

    why_empty = "no history: there is neither a daemon nor a store"

    def runs(self) -> list[Run]:
        return []

"""What to do about a run, and how it is said."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from monitor.model import units


class Verdict(Struct, frozen=True):
    """What to do about a run, decided by the advice engine: the cause to fix first and the gain."""

    kind: Literal["fix", "hint", "healthy", "unknown"]
    """"hint": nothing serious, but something may be worth changing; "healthy": no check found anything."""
    headline: str = ""
    """The cause (or that there is none) as a clause, without a full stop."""
    rule: str | None = None
    """Id of the rule behind it."""
    remedy: str = ""
    gain: float | None = None
    """Likely speed-up of that one remedy; None if none worth mentioning is predicted."""
    note: str = ""
    """What a reader must know about that figure: "unverified on a GPU"."""
    combined: float | None = None
    """Likely speed-up of all remedies together; None if that is hardly more."""
    steps: int = 0
    lost: int = 0

    def text(self) -> str:
        """The verdict as one to three sentences."""
        if self.kind == "unknown":
            lost = f"{self.steps} steps, {self.lost} of them not read"
            read = lost if self.lost else f"{self.steps} steps"
            return f"Too little was measured to judge the step: {read}."
        if self.kind == "healthy":
            return f"{self.headline}. {self.remedy}"
        if self.kind == "hint":
            return f"Nothing serious, but: {self.headline}.{self._gain()}"
        more = f" All remedies together: about {units.gain(self.combined)}." if self.combined else ""
        return f"{self.headline}.{self._gain()}{more}"

    def _gain(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f" Fixing it should give about {units.gain(self.gain)}{note}." if self.gain else ""

"""Finished runs: assembled once, then kept unchanged. They hold no files and no buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from msgspec import Struct

from monitor.model.clock import Moment
from monitor.model.run import Rank, Run
from monitor.runs.grouping import RunKey
from monitor.runs.trouble import Trouble

MAX_ENDED = 256
MAX_ENDED_PER_OWNER = 128
"""Our choices: as many as a person would scroll through; older runs are in the history."""


class EndedRun(Struct, frozen=True):
    run: Run
    at: float
    """When it ended, on the monotonic clock."""


class EndedRuns:
    """Shown for some minutes. If there are too many, the oldest of the owner with the most leave early."""

    def __init__(self, keep_seconds: float, trouble: Trouble) -> None:
        self.keep_seconds = keep_seconds
        self._trouble = trouble
        self._runs: dict[RunKey, EndedRun] = {}
        self._revived: dict[RunKey, tuple[Rank, ...]] = {}

    @property
    def runs(self) -> list[Run]:
        return [one.run for one in self._runs.values()]

    def add(self, key: RunKey, run: Run, at: float) -> None:
        self._revived.pop(key, None)
        self._runs[key] = EndedRun(run, at)

    def revive(self, key: RunKey) -> tuple[Rank, ...]:
        """Another rank of an apparently finished run has turned up: returns the ranks known before."""
        known = self._runs.pop(key, None)
        if known is not None:
            self._revived[key] = known.run.ranks
        return self._revived.get(key, ())

    def forget_revived(self, live: Collection[RunKey]) -> None:
        """Only live runs need their earlier ranks."""
        self._revived = {key: ranks for key, ranks in self._revived.items() if key in live}

    def expire(self, now: Moment) -> None:
        old = [key for key, one in self._runs.items() if now.monotonic - one.at > self.keep_seconds]
        for key in old:
            del self._runs[key]

    def cut(self) -> None:
        """Once everything has been shown: reduce to what may stay."""
        counts = Counter(owner for owner, _ in self._runs)
        while counts:
            owner, most = counts.most_common(1)[0]
            if most <= MAX_ENDED_PER_OWNER and counts.total() <= MAX_ENDED:
                return
            self._cut_one(owner)
            counts[owner] -= 1

    def _cut_one(self, owner: int) -> None:
        key = min((key for key in self._runs if key[0] == owner), key=lambda key: self._runs[key].at)
        self._trouble.note(owner, "ended", self._runs.pop(key).run.id)

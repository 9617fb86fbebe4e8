"""All runs there are: those in view now and those of the history. What web, TUI and commands ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from monitor.compare import Comparison, compare
from monitor.runs.listing import RunRow, find, row, together
from monitor.snapshot import Finding, Run
from monitor.store.history import History, RunRecord
from monitor.store.schema import StoreError
from monitor.store.store import Store
from monitor.store.verify import keep

MAX_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Now:
    """What is in view at this moment."""

    runs: Sequence[Run] = ()
    findings: Sequence[Finding] = ()
    time: float = 0.0


class Catalog:
    """`now` is asked anew for every question; `history` may be missing or unreadable."""

    def __init__(self, now: Callable[[], Now], history: History | None) -> None:
        self._now = now
        self._history = history
        self.trouble: str | None = None
        """Why the history could not be read, when it could not."""

    def records(self, *, limit: int = MAX_ROWS) -> list[RunRecord]:
        """The newest first."""
        now = self._now()
        return together(now.runs, now.findings, self._past(limit), now.time)[:limit]

    def _past(self, limit: int) -> list[RunRecord]:
        if self._history is None:
            return []
        try:
            return self._history.runs(limit=limit)
        except StoreError as error:
            self.trouble = str(error)
            return []

    def rows(self, *, limit: int = MAX_ROWS, state: str | None = None) -> list[RunRow]:
        rows = [row(record) for record in self.records()]
        return [one for one in rows if state is None or one.state == state][:limit]

    def record(self, wanted: str) -> RunRecord:
        """By id, beginning of an id, name or ``last``. Raises `UserError` with near matches."""
        known = self._exact(wanted)
        if known is not None:
            return known
        records = {record.run.id: record for record in self.records()}
        return records[find([row(record) for record in records.values()], wanted).run]

    def _exact(self, run: str) -> RunRecord | None:
        """A full id needs no list of everything."""
        now = self._now()
        live = [one for one in now.runs if one.id == run]
        if live:
            return together(live, now.findings, (), now.time)[0]
        try:
            return self._history.run(run) if self._history is not None else None
        except StoreError as error:
            self.trouble = str(error)
            return None

    def compare(self, a: str, b: str) -> Comparison:
        """Compare two runs and note in the ledger what was realised. Raises `UserError`."""
        before, after = self.record(a), self.record(b)
        found = compare(before, after)
        if isinstance(self._history, Store):
            keep(self._history, before, found)
        return found

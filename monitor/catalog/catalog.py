"""All runs, live and from the history: what the web, TUI and commands query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from monitor.catalog.rows import RunRow, find, row, together
from monitor.comparison.compare_runs import Comparison, compare
from monitor.model.finding import Finding
from monitor.model.history import HistoryPage, RunRecord
from monitor.model.run import Run
from monitor.model.steps import Columns
from monitor.store.chunks import Steps
from monitor.store.history import MAX_STEPS, History
from monitor.store.ledger import Entry
from monitor.store.schema import StoreError
from monitor.store.store import Store
from monitor.store.verify import keep_realised

MAX_ROWS = 1000
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Now:
    """What is in view at this moment."""

    runs: Sequence[Run] = ()
    findings: Sequence[Finding] = ()
    time: float = 0.0


class Catalog:
    """`now` is called for every query; `history` may be missing or unreadable. `shown` reduces a record to
    what the person asking may see."""

    def __init__(
        self,
        now: Callable[[], Now],
        history: History | None,
        shown: Callable[[RunRecord], RunRecord] = lambda record: record,
    ) -> None:
        self._now = now
        self._history = history
        self._shown = shown
        self.trouble: str | None = None
        """Why the history could not be read, if so."""

    def records(self, *, limit: int = MAX_ROWS) -> list[RunRecord]:
        """Newest first."""
        now = self._now()
        found = together(now.runs, now.findings, self._past(limit), now.time)[:limit]
        return [self._shown(record) for record in found]

    def _past(self, limit: int) -> list[RunRecord]:
        return self._asked(lambda history: history.runs(limit=limit)) or []

    def rows(self, *, limit: int = MAX_ROWS, state: str | None = None) -> list[RunRow]:
        rows = [row(record) for record in self.records()]
        return [one for one in rows if state is None or one.state == state][:limit]

    def record(self, wanted: str) -> RunRecord:
        """By id, start of an id, name or ``last``. Raises `UserError` with near matches."""
        known = self._exact(wanted)
        if known is not None:
            return self._shown(known)
        records = {record.run.id: record for record in self.records()}
        return records[find([row(record) for record in records.values()], wanted).run]

    def _exact(self, run: str) -> RunRecord | None:
        """Looks up a full id without listing everything. What is not text can be no id, nor be asked for."""
        if not run.isprintable():
            return None
        now = self._now()
        live = [one for one in now.runs if one.id == run]
        kept = self._asked(lambda history: history.run(run))
        if live:
            return together(live, now.findings, [] if kept is None else [kept], now.time)[0]
        return kept

    def readings(self, start: float, end: float, points: int) -> HistoryPage | None:
        """What the history kept about the machine between two wall times; None if there is no history."""
        return self._asked(lambda history: history.history(start, end, points))

    def ledger(self) -> list[Entry]:
        """Promises and what became of them, newest first."""
        return self._asked(lambda history: history.ledger()) or []

    def steps(self, run: str, *, rank: int = 0, after: int = 0, limit: int = MAX_STEPS) -> Steps:
        """Individual steps of a run, by its full id."""
        return self._asked(lambda history: history.steps(run, rank, after=after, limit=limit)) or Steps()

    def columns(self, run: str, start: float, end: float) -> tuple[tuple[str, ...], list[Columns]]:
        """Names of phases, and the first rank's steps between two wall times, by the run's full id."""
        return self._asked(lambda history: history.columns(run, start, end)) or ((), [])

    def _asked(self, question: Callable[[History], Answer]) -> Answer | None:
        if self._history is None:
            return None
        try:
            return question(self._history)
        except StoreError as error:
            self.trouble = str(error)
            return None

    def compare(self, a: str, b: str, *, may_note: Callable[[Run], bool] = lambda run: True) -> Comparison:
        """Compare two runs; realised gains go into the ledger if it is writable and `may_note` allows it for
        both. Raises `UserError`."""
        before, after = self.record(a), self.record(b)
        found = compare(before, after)
        if isinstance(self._history, Store) and may_note(before.run) and may_note(after.run):
            keep_realised(self._history, before, found)
        return found

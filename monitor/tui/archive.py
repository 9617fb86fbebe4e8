"""The past: runs, readings and the ledger, from a daemon's API or directly from the store's file.

Calls may take a moment (network, disk), so screens make them in a worker thread. Failures are `UserError`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from monitor.catalog.catalog import Catalog, Now
from monitor.catalog.rows import RunRow, from_shown
from monitor.client import Client
from monitor.comparison.compare_runs import Comparison
from monitor.model.errors import UserError
from monitor.model.finding import Finding
from monitor.model.history import HistoryPage, RunRecord
from monitor.store.history import History
from monitor.store.ledger import Entry
from monitor.store.schema import StoreError

T = TypeVar("T")
MOST = 1000


class _Ledger(msgspec.Struct):
    entries: list[Entry] = []


class Archive:
    """An empty archive, and the base of the real ones."""

    where = "there is neither a daemon nor a store"

    def rows(self) -> list[RunRow]:
        """Live and past runs, newest first."""
        return []

    def record(self, run: str) -> RunRecord:
        """Everything about one run."""
        raise UserError(f"there is no run {run}: {self.where}")

    def compare(self, a: str, b: str) -> Comparison:
        """Run `a` against run `b`."""
        raise UserError(f"nothing to compare: {self.where}")

    def page(self, start: float, end: float, points: int) -> HistoryPage | None:
        """Readings of a period."""
        return None

    def ledger(self, finding: Finding) -> list[Entry]:
        """Predictions of the finding's rule that were realised on this kind of machine, this run's first."""
        return []


class DaemonArchive(Archive):
    """Asks the daemon."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self.where = f"from the daemon {url}" if url else "from the daemon of this machine"

    def rows(self) -> list[RunRow]:
        return self._get(f"/api/v1/runs?limit={MOST}", list[RunRow])

    def record(self, run: str) -> RunRecord:
        return from_shown(self._get(f"/api/v1/runs/{quote(run, safe='')}", dict[str, Any]))

    def compare(self, a: str, b: str) -> Comparison:
        return self._get(f"/api/v1/compare?a={quote(a, safe='')}&b={quote(b, safe='')}", Comparison)

    def page(self, start: float, end: float, points: int) -> HistoryPage | None:
        return self._get(f"/api/v1/history?from={start:.3f}&to={end:.3f}&points={points}", HistoryPage)

    def ledger(self, finding: Finding) -> list[Entry]:
        found = self._get(f"/api/v1/ledger?rule={quote(finding.id)}&limit=200", _Ledger).entries
        return _realised(found, finding)

    def _get(self, path: str, kind: type[T]) -> T:
        with Client(self._url) as client:
            body = client.get(path)
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise UserError(f"cannot understand the daemon's answer to {path}: {error}") from error


class StoreArchive(Archive):
    """Reads the file, whether or not a daemon is writing it."""

    def __init__(self, path: Path, now: Callable[[], Now] = Now) -> None:
        self._history = History(path)
        self._catalog = Catalog(now, self._history)
        self.where = f"from {path}"

    def rows(self) -> list[RunRow]:
        rows = self._catalog.rows(limit=MOST)
        if self._catalog.trouble and not rows:
            raise UserError(self._catalog.trouble)
        return rows

    def record(self, run: str) -> RunRecord:
        return self._catalog.record(run)

    def compare(self, a: str, b: str) -> Comparison:
        return self._catalog.compare(a, b)

    def page(self, start: float, end: float, points: int) -> HistoryPage | None:
        return self._ask(lambda: self._history.history(start, end, points))

    def ledger(self, finding: Finding) -> list[Entry]:
        return _realised(self._ask(lambda: self._history.ledger(rule=finding.id)), finding)

    @staticmethod
    def _ask(question: Callable[[], T]) -> T:
        try:
            return question()
        except StoreError as error:
            raise UserError(str(error)) from error


def _realised(entries: list[Entry], finding: Finding) -> list[Entry]:
    kinds = {entry.host_kind for entry in entries if entry.run == finding.run}
    known = [entry for entry in entries if entry.realised is not None and entry.host_kind in kinds]
    return sorted(known, key=lambda entry: entry.run != finding.run)[:8]

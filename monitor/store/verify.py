"""Was a prediction right? A later run of the same script in which the finding is gone tells."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from monitor.compare import Comparison, compare
from monitor.snapshot import Snapshot
from monitor.store.changes import Changes
from monitor.store.history import History, RunRecord
from monitor.store.ledger import subject_of
from monitor.store.schema import StoreError

if TYPE_CHECKING:
    from monitor.store.store import Store

LOOK_BACK = 20
"""Runs before this one in which its predecessor is looked for."""
OTHER_WORK = ("the model", "the number of", "the data set", "the host", "the device", "the GPU")
"""Differences that make two runs incomparable; another batch size or script is what a remedy changes."""


class Verifier:
    """Watches snapshots for runs that end and for findings that go while a run lives."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._live: set[str] = set()
        """Runs seen live, to notice their end."""
        self._changes = Changes()

    def update(self, snapshot: Snapshot) -> None:
        with contextlib.suppress(StoreError):
            self._ended(snapshot)
        self._changed(snapshot)

    def _ended(self, snapshot: Snapshot) -> None:
        for run in snapshot.runs:
            if run.state in ("running", "stalled"):
                self._live.add(run.id)
            elif run.id in self._live:
                self._live.discard(run.id)
                own = tuple(finding for finding in snapshot.findings if finding.run == run.id)
                verify(self._store, RunRecord(run, own, snapshot.time))

    def _changed(self, snapshot: Snapshot) -> None:
        for change in self._changes.update(snapshot):
            self._store.record_prediction(change.run, change.finding)
            self._store.realised(
                change.run.id,
                change.finding.id,
                change.ratio,
                after_run=change.run.id,
                low=change.low,
                high=change.high,
                subject=subject_of(change.finding),
                way="change",
            )


def verify(store: Store, record: RunRecord) -> Comparison | None:
    """A run that is over against the one before it of the same script; None when there is none."""
    before = predecessor(store, record)
    if before is None:
        return None
    found = compare(before, record)
    keep(store, before, found)
    return found


def predecessor(history: History, record: RunRecord) -> RunRecord | None:
    """The newest earlier run of the same script that had something to predict."""
    for other in history.runs(limit=LOOK_BACK):
        same = other.run.script is not None and other.run.script == record.run.script
        if same and other.run.started < record.run.started and any(f.speedup for f in other.findings):
            return other
    return None


def keep(store: Store, before: RunRecord, found: Comparison) -> None:
    """What B realised of A's predictions, into the ledger; a divided gain is no evidence."""
    if found.speedup is None or any(warning.startswith(OTHER_WORK) for warning in found.warnings):
        return
    promised = {(finding.id, finding.rank): finding for finding in before.findings}
    for one in found.realised:
        finding = promised[one.id, one.rank]
        if one.realised is None or one.shared:
            continue
        store.record_prediction(before.run, finding)
        store.realised(
            before.run.id,
            finding.id,
            one.realised,
            after_run=found.b.run,
            low=found.low,
            high=found.high,
            subject=subject_of(finding),
        )

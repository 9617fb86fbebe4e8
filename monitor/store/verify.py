"""Whether a prediction was right: shown by a later run of the same script without the finding."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from monitor.comparison.compare_runs import Comparison, compare
from monitor.model import facts
from monitor.model.history import RunRecord
from monitor.model.snapshot import Snapshot
from monitor.store.history import History
from monitor.store.ledger import Realisation, subject_of
from monitor.store.owners import owner_of
from monitor.store.schema import StoreError

if TYPE_CHECKING:
    from monitor.store.store import Store

LOOK_BACK = 20
"""How many earlier runs of the same script are searched for a run's predecessor."""
AT_ONCE = 4
"""Runs verified per tick, each of a different owner."""
MAX_WAITING = 64
"""Per owner; beyond this, the oldest are not verified."""
MAX_LIVE = 4096


class Verifier:
    """Watches snapshots for runs that end. Changes within a live run (neighbours leave, a card cools down)
    prove nothing about a remedy."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._live: set[str] = set()
        """Runs seen live, so that we notice their end."""
        self._due: dict[int, deque[RunRecord]] = {}
        """Owner → finished runs not yet verified."""

    def update(self, snapshot: Snapshot) -> None:
        self._note(snapshot)
        with contextlib.suppress(StoreError):
            for record in self._next():
                verify(self._store, record)

    def _note(self, snapshot: Snapshot) -> None:
        if len(self._live) > MAX_LIVE:  # some runs' ends were never in view
            self._live &= {run.id for run in snapshot.runs}
        for run in snapshot.runs:
            if run.live:
                self._live.add(run.id)
            elif run.id in self._live:
                self._live.discard(run.id)
                own = facts.own_findings(run, snapshot.findings)
                waiting = self._due.setdefault(owner_of(run), deque(maxlen=MAX_WAITING))
                waiting.append(RunRecord(run, own, snapshot.time))

    def _next(self) -> Iterator[RunRecord]:
        """The next run of each owner in turn: a comparison takes some 20 ms, and a tick must not wait for a
        crowd."""
        for owner in list(self._due)[:AT_ONCE]:
            waiting = self._due.pop(owner)
            yield waiting.popleft()
            if waiting:
                self._due[owner] = waiting  # to the back of the queue


def verify(store: Store, record: RunRecord) -> Comparison | None:
    """Compares a finished run with its script's previous one; None if there is none."""
    before = predecessor(store, record)
    if before is None:
        return None
    found = compare(before, record)
    keep_realised(store, before, found)
    return found


def predecessor(history: History, record: RunRecord) -> RunRecord | None:
    """The owner's latest run of the same script and name that ended without failing and had a predicted
    gain."""
    run = record.run
    if run.script is None:
        return None
    for other in history.runs_of_script(run.script, run.name, owner_of(run), LOOK_BACK):
        over = other.run.ended is not None and other.run.ended <= run.started
        if over and any(finding.speedup for finding in other.findings):
            return other
    return None


def keep_realised(store: Store, before: RunRecord, found: Comparison) -> None:
    """Record in the ledger what B realised of A's predictions; a divided gain is not evidence."""
    promised = {(finding.id, finding.rank): finding for finding in before.findings}
    for one in found.realised:
        finding = promised[one.id, one.rank]
        if one.realised is None or one.shared:
            continue
        store.realised(
            Realisation(
                run=before.run.id,
                rule=finding.id,
                subject=subject_of(finding),
                ratio=one.realised,
                low=found.low,
                high=found.high,
                after_run=found.b.run,
                changed=one.changed,
                owner_uid=owner_of(before.run),
            )
        )

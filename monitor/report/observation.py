"""Watches a run from outside: through the daemon, or with a pipeline in this process."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from monitor.model import settings
from monitor.model.address import is_served, resolve
from monitor.model.errors import UserError
from monitor.model.logs import log_plainly
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot
from monitor.pipeline.pipeline import Pipeline
from monitor.report.milestones import Seen
from monitor.report.report import Report, make_report, trainings
from monitor.store.ledger import Entry, TrackRecord
from monitor.store.schema import StoreError
from monitor.store.store import Store

if TYPE_CHECKING:
    from monitor.client import Client

SETTLE_SECONDS = 3.0
"""How long to wait after the end for the reader to notice that the run has ended."""
FIRST_INTERVAL = 1.0
"""The daemon's own interval."""
UNSEEN_YOUNG = 3
"""Chosen: evaluations of a run, one more than a finding needs to be kept, before it rests if nobody sees it.
The report is made anew at the end, when what it is about has changed; only the history has the others."""


class Observation:
    """The run with this id as the daemon sees it; if none answers, as our own pipeline sees it, which also
    records it in the history."""

    def __init__(self, run_id: str, client: Client | None, *, shown: bool = True) -> None:
        """`shown`: somebody looks at the run while it lasts."""
        self.run_id = run_id
        self._young = None if shown else UNSEEN_YOUNG
        self._client = client
        self._store: Store | None = None
        self._pipeline: Pipeline | None = None
        self._newest_own: Snapshot | None = None
        if client is None:
            self._open()

    def _open(self) -> None:
        log_plainly()
        chosen = dataclasses.replace(settings.load(), interval=FIRST_INTERVAL)
        self._store = _open_store(chosen)
        self._pipeline = Pipeline(chosen, store=self._store, run=self.run_id, young=self._young)

    def tick(self) -> None:
        """Read what is new; the daemon does this by itself."""
        if self._pipeline is not None:
            self._newest_own = self._pipeline.tick()

    def look(self) -> Run | None:
        """The run as last read; with several trainings, the latest."""
        newest = self._newest() if self._client is not None else self._newest_own
        found = trainings(newest, self.run_id)
        return found[-1] if found else None

    def report(self, exit_code: int | None, seen: Seen) -> Report:
        """The run is over: read once more and summarise."""
        report = make_report(self._settled(), self.run_id, exit_code, seen)
        return dataclasses.replace(report, **self._ledger(report))

    def _ledger(self, report: Report) -> dict[str, Any]:
        """What the history knows about earlier predictions; empty if there is none."""
        rules = {finding.id for finding in report.findings if finding.speedup}
        try:
            if self._client is not None:
                answer = self._client.get_json("/api/v1/ledger")
                entries = msgspec.convert(answer["entries"], list[Entry])
                records = msgspec.convert(answer["rules"], list[TrackRecord])
            elif self._store is not None:
                entries, records = self._store.ledger(), self._store.track_records()
            else:
                return {}
        except (UserError, StoreError, msgspec.MsgspecError, KeyError, TypeError):
            return {}
        kept = tuple(
            entry for entry in entries if entry.after_run == self.run_id and entry.run != self.run_id
        )
        kind = report.run.host_kind if report.run is not None else None
        known = {
            one.rule: one for one in records if one.rule in rules and one.realised and one.host_kind == kind
        }
        return {"kept": kept, "records": known}

    def _settled(self) -> Snapshot | None:
        """A snapshot in which all trainings have ended, or the latest one if that takes too long."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            snapshot = self._newest()
            runs = trainings(snapshot, self.run_id)
            if not runs and self._client is not None:
                self._client.close()
                self._client = None  # this daemon watches other directories: read the ring ourselves
                self._open()
                continue
            if not any(run.live for run in runs) or time.monotonic() > deadline:
                return snapshot
            time.sleep(0.1)

    def _newest(self) -> Snapshot | None:
        if self._client is not None:
            try:
                return self._client.snapshot()
            except UserError:
                return None
        return self._pipeline.tick() if self._pipeline is not None else None

    def close(self) -> None:
        for opened in (self._pipeline, self._store, self._client):
            if opened is not None:
                opened.close()


def daemon(connect: str | None) -> Client | None:
    """A daemon that answers. If one was named, it must; otherwise there may be none."""
    if connect is None and not is_served(resolve()):
        return None
    from monitor.client import Client

    client = Client(connect, timeout=2.0)
    try:
        client.snapshot()
    except UserError:
        client.close()
        if connect:
            raise
        return None
    return client


def _open_store(chosen: settings.Settings) -> Store | None:
    """The history, if it can be opened: a run is worth watching without it."""
    if chosen.store is None:
        return None
    with contextlib.suppress(OSError, UserError):
        Path(chosen.store).parent.mkdir(parents=True, exist_ok=True)
        return Store(chosen.store)
    return None

"""The writing side of the history. It never stops the daemon: failed writes are reported and counted.

Records and their ring's counters are written in one transaction, so a daemon that is killed and restarted
continues exactly where the database is: nothing is lost, nothing stored twice.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from monitor.model import facts
from monitor.model.decoders import decoder
from monitor.model.finding import Finding, Speedup
from monitor.model.records import Counters, RingIdentity
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot, encode
from monitor.model.steps import Columns
from monitor.store import retention
from monitor.store.batches import Batch, stored_chunks, write_batches
from monitor.store.chunks import BrokenChunk, pack, unpack
from monitor.store.clock import StoreClock
from monitor.store.corrupt import BROKEN_ROW, UNWRITABLE
from monitor.store.history import History
from monitor.store.ledger import Realisation, write_predictions, write_realisation
from monitor.store.owners import adopt, owner_of
from monitor.store.readings import Reading, readings
from monitor.store.schema import StoreError, open_writable, set_aside
from monitor.store.spending import Spending
from monitor.store.verify import Verifier

log = logging.getLogger("gpumon.store")

MAX_BYTES = 1 << 30
MAX_AGE_SECONDS = 30 * 86400.0
"""Our choices, and the defaults of --store-max-size and --store-max-age."""
MAX_PENDING = 20_000
"""Batches kept in memory while the database cannot be written; beyond this, the oldest are dropped."""
REMEMBER_SECONDS = 600.0
"""Our choice: how long we remember where we left a ring."""
RUN_EVERY_SECONDS = 10.0
MAINTAIN_EVERY_SECONDS = 60.0
RETRY_SECONDS = 10.0
"""Our choices: seconds between writes of a run whose state stays, maintenance, and retries of an unwritable
file."""
GONE_SECONDS = 120.0
"""A run marked as running that no daemon has seen for this long died unnoticed."""


Promises = list[tuple[str, int | None, Speedup | None]]
"""What the findings of a run promise: rule, rank, gain."""


class Written(NamedTuple):
    """A run's row: when it was last looked at, what it told, and its digest."""

    looked_at: float
    state: str
    promised: Promises
    digest: int


class Store(History):
    """Implements `RecordSink`. One thread writes; queries may come from any."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = MAX_BYTES,
        max_age: float = MAX_AGE_SECONDS,
        gather_seconds: float = 0.0,
    ) -> None:
        """`gather_seconds`: readings are written together that often."""
        super().__init__(path)
        self.gather_seconds = gather_seconds
        self.max_bytes = max_bytes
        self.max_age = max_age
        self.error: str | None = None
        """Why nothing is being stored, in one sentence; None if all is well."""
        self.lost_steps = 0
        """Steps dropped because the database could not be written for too long, or over their owner's
        limit."""
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._retry_at = 0.0
        self._pending: list[Batch] = []
        self._rings: dict[str, int] = {}
        """Key of each ring this process has written to → when it last did."""
        self._series: dict[tuple[str, str], int] = {}
        self._gathered: list[tuple[int, Reading]] = []
        """Readings that wait to be written, and when they were taken."""
        self._write_due = 0.0
        self._written: dict[tuple[str, int], Written] = {}
        """Run and owner → its row as last written."""
        self.spending = Spending()
        self._clock = StoreClock()
        self._verifier = Verifier(self)
        self._next_maintenance = 0.0
        self._over = False
        """It was too large and is still being reduced."""
        self._open()

    # ── RecordSink ──

    def resume(self, key: str) -> Counters | None:
        if self._database is None:
            return None
        try:
            row = self._database.execute("SELECT counters FROM rings WHERE key = ?", (key,)).fetchone()
            return decoder(Counters).decode(row[0]) if row else None
        except sqlite3.Error as error:
            self._fail(error)
        except BROKEN_ROW as error:
            log.warning("%s: the position of ring %s cannot be read: %s", self.path, key, error)
        return None

    def replay(self, ring: RingIdentity) -> Iterator[Columns]:
        try:
            chunks = stored_chunks(self._database, ring) if self._database is not None else []
        except sqlite3.Error as error:
            self._fail(error)
            return
        for chunk in chunks:
            try:
                yield unpack(chunk, ring.wall_offset_ns)
            except BrokenChunk as error:
                log.warning("%s: %s", self.path, error)

    def records(self, ring: RingIdentity, columns: Columns | None, counters: Counters) -> None:
        """Surplus steps are not kept, but the ring's position is, so that they are not read again."""
        chunk = pack(columns, ring.wall_offset_ns) if columns is not None and len(columns) else None
        if chunk is not None and not self.spending.allows(ring.owner, len(chunk.packed), chunk.count):
            self.lost_steps += chunk.count
            chunk = None
        self._pending.append((ring, chunk, encode(counters)))
        if len(self._pending) > MAX_PENDING:
            given_up = self._pending.pop(0)[1]
            self.lost_steps += given_up.count if given_up else 0

    def commit(self) -> None:
        if self._pending and self._write(
            lambda database: write_batches(database, self._pending, self._rings)
        ):
            self._pending.clear()

    def finished(self, key: str) -> bool:
        return self.error is None and not any(ring.key == key for ring, _, _ in self._pending)

    # ── Snapshots ──

    def append(self, snapshot: Snapshot) -> None:
        """Store one tick's readings and runs. Raises `StoreError` while history cannot be written; what could
        not be written is lost, not hoarded."""
        now_us = int(snapshot.time * 1e6)
        self._gathered += [(now_us, reading) for reading in readings(snapshot)]
        if snapshot.monotonic >= self._write_due or self._due(snapshot):
            self._write_due = snapshot.monotonic + self.gather_seconds
            try:
                self._write(lambda database: self._write_snapshot(database, snapshot))
            finally:
                self._gathered.clear()
        if self.error is None:
            self._verifier.update(snapshot)
        expire = self._clock.may_expire()
        if snapshot.monotonic >= self._next_maintenance:
            self._forget(snapshot)
            more = self.maintain(snapshot.time, expire=expire)
            self._next_maintenance = snapshot.monotonic + (0.0 if more else MAINTAIN_EVERY_SECONDS)
        if self.error is not None:
            raise StoreError(self.error)

    def maintain(self, now: float, *, expire: bool = True) -> bool:
        """Roll up, drop what is too old or too much, return free space. True: call again soon. With `expire`
        off, nothing counts as too old, because somebody has just set the clock."""
        now_us = int(now * 1e6)
        if not self._write(lambda database: self._let_go(database, now_us) if expire else None):
            return False
        self._write(self._clock.keep)
        if self._database is None:
            return False
        try:
            with self._lock:
                over = self._over or retention.used_bytes(self._database) > self.max_bytes
                self._over = over and retention.shrink(self._database, self.max_bytes)
                return retention.give_back(self._database) or self._over
        except sqlite3.Error as error:
            self._fail(error)
            return False

    def _let_go(self, database: sqlite3.Connection, now_us: int) -> None:
        retention.roll_up(database, now_us)
        retention.drop_old(database, now_us, self.max_age)
        retention.drop_surplus(database)
        database.execute(
            "UPDATE runs SET state = 'killed', ended_us = updated_us"
            " WHERE state IN ('running', 'stalled') AND updated_us < ?",
            (now_us - int(GONE_SECONDS * 1e6),),
        )
        self._series.clear()

    def _forget(self, snapshot: Snapshot) -> None:
        """Forget runs and rings that are out of view; the database still has them if needed."""
        oldest_us = int((snapshot.time - REMEMBER_SECONDS) * 1e6)
        self._rings = {key: at for key, at in self._rings.items() if at >= oldest_us}
        seen = {(run.id, owner_of(run)) for run in snapshot.runs}
        self._written = {run: known for run, known in self._written.items() if run in seen}

    # ── Ledger ──

    def realised(self, seen: Realisation) -> None:
        """Record what a remedy gained next to what was predicted."""
        self._write(lambda database: write_realisation(database, seen))

    def known_errors(self) -> dict[str | None, dict[str, float]]:
        """How far predictions have been off so far; empty while the history cannot be read."""
        with contextlib.suppress(StoreError):
            return self.errors()
        return {}

    # ── Writing ──

    def _open(self) -> bool:
        """Open or reopen. A corrupt file is moved aside and a new one started."""
        try:
            self._database = open_writable(self.path)
            self._clock.restore(self._database)
        except sqlite3.DatabaseError as error:
            if not _is_corrupt(error):
                self._fail(error)
                return False
            return self._start_anew(error)
        except (OSError, StoreError) as error:
            self._fail(error)
            return False
        return True

    def _start_anew(self, error: Exception) -> bool:
        self._close_database()
        try:
            aside = set_aside(self.path)
            self._database = open_writable(self.path)
        except (sqlite3.Error, OSError, StoreError) as again:
            self._fail(again)
            return False
        self._local = threading.local()
        log.warning(
            "the history %s was corrupt (%s): moved to %s, and a new one was started",
            self.path,
            error,
            aside,
        )
        return True

    def _write(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        """One transaction; a failure is kept in `error`, logged once, and retried later."""
        with self._lock:
            if self._database is None and (time.monotonic() < self._retry_at or not self._open()):
                return False
            assert self._database is not None
            try:
                self._database.execute("BEGIN IMMEDIATE")
                work(self._database)
                self._database.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                self._undo(self._database)
                if _is_corrupt(error):
                    self._start_anew(error)
                else:
                    self._fail(error)
                return False
            except BaseException:
                self._undo(self._database)
                raise
            if self.error is not None:
                log.info("history is being recorded again")
                self.error = None
            return True

    def _undo(self, database: sqlite3.Connection) -> None:
        """Nothing noted as written in this transaction actually was."""
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        self._series.clear()
        self._written.clear()

    def _fail(self, error: Exception) -> None:
        sentence = f"cannot write history to {self.path}: {error}"
        if sentence != self.error:
            log.warning("%s; gpumon continues without it", sentence)
        self.error = sentence
        self._retry_at = time.monotonic() + RETRY_SECONDS

    def _due(self, snapshot: Snapshot) -> list[Run]:
        """Runs whose rows are to be looked at: when they appear, when their state changes or, once they are
        over, what their findings promise; and now and then."""
        promised = _promises(snapshot.findings) if snapshot.runs else {}
        return [run for run in snapshot.runs if self._is_due(run, snapshot.monotonic, promised)]

    def _is_due(self, run: Run, now: float, promised: Mapping[str | None, Promises]) -> bool:
        known = self._written.get((run.id, owner_of(run)))
        if known is None or known.state != run.state or now - known.looked_at >= RUN_EVERY_SECONDS:
            return True
        return not run.live and known.promised != promised.get(run.id, [])

    def _write_snapshot(self, database: sqlite3.Connection, snapshot: Snapshot) -> None:
        self._write_readings(database)
        for run in self._due(snapshot):
            try:
                self._write_run(database, run, snapshot)
            except UNWRITABLE as error:
                self.spending.refuse(owner_of(run), f"{run.id}: {error}")

    def _write_readings(self, database: sqlite3.Connection) -> None:
        rows = [(self._series_id(database, s, f), now_us, value) for now_us, (s, f, value) in self._gathered]
        database.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?)", rows)

    def _series_id(self, database: sqlite3.Connection, subject: str, field: str) -> int:
        known = self._series.get((subject, field))
        if known is None:
            database.execute("INSERT OR IGNORE INTO series (subject, field) VALUES (?, ?)", (subject, field))
            query = "SELECT id FROM series WHERE subject = ? AND field = ?"
            known = int(database.execute(query, (subject, field)).fetchone()[0])
            self._series[subject, field] = known
        return known

    def _write_run(self, database: sqlite3.Connection, run: Run, snapshot: Snapshot) -> None:
        """Writes a run unless nothing about it has changed; along with what its findings promise, so that the
        ledger has every prediction of every stored run."""
        owner, before = owner_of(run), self._written.get((run.id, owner_of(run)))
        own = facts.own_findings(run, snapshot.findings)
        findings, body = encode(own), encode(run)
        promised = _promises(own).get(run.id, [])
        seen = Written(snapshot.monotonic, run.state, promised, hash((body, findings)))
        if before is None:
            adopt(database, run)
            if not self._is_known(database, run) and not self.spending.allows(owner, len(body)):
                return
        self._written[run.id, owner] = seen
        if before is not None and before.digest == seen.digest:
            return
        ended = int(run.ended * 1e6) if run.ended is not None else None
        times = (int(run.started * 1e6), ended, int(snapshot.time * 1e6))
        database.execute(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (run.id, owner, run.name, run.state, *times, run.script, body, findings),
        )
        write_predictions(database, run, own)

    def _is_known(self, database: sqlite3.Connection, run: Run) -> bool:
        query = "SELECT 1 FROM runs WHERE id = ? AND owner = ?"
        return database.execute(query, (run.id, owner_of(run))).fetchone() is not None

    def _close_database(self) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def close(self) -> None:
        """Write what is pending, then close."""
        self.commit()
        if self._gathered:
            self._write(self._write_readings)
        with self._lock:
            self._close_database()


def _promises(findings: Iterable[Finding]) -> dict[str | None, Promises]:
    """By run."""
    found: dict[str | None, Promises] = {}
    for one in findings:
        found.setdefault(one.run, []).append((one.id, one.rank, one.speedup))
    return found


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

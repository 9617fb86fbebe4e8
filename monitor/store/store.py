"""The writing side of history. It never stops the daemon: what cannot be written is said and counted.

Records and their ring's counters are written in one transaction, so a daemon that is killed and
started again goes on exactly where the database is: nothing lost, nothing twice.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from monitor.runs.columns import Columns
from monitor.runs.sink import Counters, RingIdentity
from monitor.snapshot import Finding, Run, Snapshot, encode
from monitor.store import retention
from monitor.store.batches import Batch, stored_chunks, write_batches
from monitor.store.chunks import pack, unpack
from monitor.store.history import History
from monitor.store.ledger import write_prediction
from monitor.store.readings import readings
from monitor.store.schema import StoreError, open_writable, set_aside
from monitor.store.verify import Verifier

log = logging.getLogger("gpumon.store")

MAX_BYTES = 1 << 30
MAX_AGE_SECONDS = 30 * 86400.0
MAX_PENDING = 20_000
"""Batches kept in memory while the database cannot be written; then the oldest are given up."""
MAX_REMEMBERED = 4096
RUN_EVERY_SECONDS = 10.0
MAINTAIN_EVERY_SECONDS = 60.0
RETRY_SECONDS = 10.0
GONE_SECONDS = 120.0
"""A run called running that no daemon has seen for so long has died unseen."""
LIVE = ("running", "stalled")
_counters_decoder = msgspec.json.Decoder(Counters)


class Store(History):
    """Implements `RecordSink`. One thread writes; queries may come from any."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, max_age: float = MAX_AGE_SECONDS) -> None:
        super().__init__(path)
        self.max_bytes = max_bytes
        self.max_age = max_age
        self.error: str | None = None
        """Why nothing is being stored now, in one sentence; None when all is well."""
        self.lost_steps = 0
        """Steps given up because the database could not be written for too long."""
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._retry_at = 0.0
        self._pending: list[Batch] = []
        self._rings: dict[str, int] = {}
        """Key of each ring this process has written to → the time it left there."""
        self._series: dict[tuple[str, str], int] = {}
        self._written: dict[str, tuple[float, int]] = {}
        """Run → when its row was last written, and a digest of it."""
        self._verifier = Verifier(self)
        self._next_maintenance = 0.0
        self._over = False
        """It was too large and is still being brought down."""
        self._open()

    # ── RecordSink ──

    def resume(self, key: str) -> Counters | None:
        if self._database is None:
            return None
        try:
            row = self._database.execute("SELECT counters FROM rings WHERE key = ?", (key,)).fetchone()
            return _counters_decoder.decode(row[0]) if row else None
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self._fail(error)
            return None

    def replay(self, ring: RingIdentity) -> Iterator[Columns]:
        try:
            chunks = stored_chunks(self._database, ring) if self._database is not None else []
        except sqlite3.Error as error:
            self._fail(error)
            return
        yield from (unpack(chunk, ring.wall_offset_ns) for chunk in chunks)

    def records(self, ring: RingIdentity, columns: Columns | None, counters: Counters) -> None:
        chunk = pack(columns, ring.wall_offset_ns) if columns is not None and len(columns) else None
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
        """Readings and runs of one tick. Raises `StoreError` while history cannot be kept."""
        self._write(lambda database: self._write_snapshot(database, snapshot))
        if self.error is None:
            self._verifier.update(snapshot)
        if snapshot.monotonic >= self._next_maintenance:
            more = self.maintain(snapshot.time)
            self._next_maintenance = snapshot.monotonic + (0.0 if more else MAINTAIN_EVERY_SECONDS)
        if self.error is not None:
            raise StoreError(self.error)

    def maintain(self, now: float) -> bool:
        """Roll up, drop what is too old or too much, give space back. True: call again soon."""
        now_us = int(now * 1e6)
        if not self._write(lambda database: self._let_go(database, now_us)) or self._database is None:
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
        database.execute(
            "UPDATE runs SET state = 'killed', ended_us = updated_us"
            " WHERE state IN ('running', 'stalled') AND updated_us < ?",
            (now_us - int(GONE_SECONDS * 1e6),),
        )
        self._series.clear()
        self._forget(now_us)

    def _forget(self, now_us: int) -> None:
        """What is remembered of runs and rings long gone; found again in the database if need be."""
        day_us = 86400 * 10**6
        self._rings = {key: at for key, at in self._rings.items() if now_us - at < day_us}
        if len(self._written) > MAX_REMEMBERED:
            self._written = dict(list(self._written.items())[-MAX_REMEMBERED:])

    # ── Ledger ──

    def record_prediction(self, run: Run, finding: Finding) -> None:
        """Keep what a finding promises; said again, the newest promise counts until it is realised."""
        self._write(lambda database: write_prediction(database, run, finding))

    def realised(
        self,
        run: str,
        rule: str,
        ratio: float,
        *,
        after_run: str | None = None,
        low: float | None = None,
        high: float | None = None,
        subject: str = "",
        way: str = "compare",
    ) -> bool:
        """Note what a remedy gained (step-rate ratio); False when it was never predicted."""
        found: list[int] = []

        def write(database: sqlite3.Connection) -> None:
            changed = database.execute(
                "UPDATE ledger SET realised = ?, realised_low = ?, realised_high = ?, after_run = ?,"
                " realised_us = ?, way = ? WHERE run = ? AND rule = ? AND subject = ?",
                (ratio, low, high, after_run, time.time_ns() // 1000, way, run, rule, subject),
            )
            found.append(changed.rowcount)

        self._write(write)
        return bool(found and found[0])

    # ── Writing ──

    def _open(self) -> bool:
        """Open or reopen. A corrupt file is moved aside and a new one begun."""
        try:
            self._database = open_writable(self.path)
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
        log.warning("the history %s was broken (%s): moved to %s, a new one begun", self.path, error, aside)
        return True

    def _write(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        """One transaction; a failure is kept in `error`, logged once, and tried again later."""
        with self._lock:
            if self._database is None and (time.monotonic() < self._retry_at or not self._open()):
                return False
            assert self._database is not None
            try:
                self._database.execute("BEGIN IMMEDIATE")
                work(self._database)
                self._database.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                self._series.clear()
                if _is_corrupt(error):
                    self._start_anew(error)
                else:
                    self._fail(error)
                return False
            if self.error is not None:
                log.info("history is being kept again")
                self.error = None
            return True

    def _fail(self, error: Exception) -> None:
        sentence = f"history cannot be kept in {self.path}: {error}"
        if sentence != self.error:
            log.warning("%s; the daemon goes on without it", sentence)
        self.error = sentence
        self._retry_at = time.monotonic() + RETRY_SECONDS

    def _write_snapshot(self, database: sqlite3.Connection, snapshot: Snapshot) -> None:
        now_us = int(snapshot.time * 1e6)
        rows = [(self._series_id(database, s, f), now_us, value) for s, f, value in readings(snapshot)]
        database.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?)", rows)
        for run in snapshot.runs:
            self._write_run(database, run, snapshot)

    def _series_id(self, database: sqlite3.Connection, subject: str, field: str) -> int:
        known = self._series.get((subject, field))
        if known is None:
            database.execute("INSERT OR IGNORE INTO series (subject, field) VALUES (?, ?)", (subject, field))
            query = "SELECT id FROM series WHERE subject = ? AND field = ?"
            known = int(database.execute(query, (subject, field)).fetchone()[0])
            self._series[subject, field] = known
        return known

    def _write_run(self, database: sqlite3.Connection, run: Run, snapshot: Snapshot) -> None:
        """A live run now and then, one that is over whenever anything about it changes."""
        when, digest = self._written.get(run.id, (-RUN_EVERY_SECONDS, 0))
        live = run.state in LIVE
        if live and snapshot.monotonic - when < RUN_EVERY_SECONDS:
            return
        own = tuple(finding for finding in snapshot.findings if finding.run == run.id)
        findings, body = encode(own), encode(run)
        if hash((body, findings)) == digest:
            return
        self._written[run.id] = (snapshot.monotonic, hash((body, findings)))
        ended = int(run.ended * 1e6) if run.ended is not None else None
        times = (int(run.started * 1e6), ended, int(snapshot.time * 1e6))
        database.execute(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (run.id, run.name, run.state, *times, run.script, body, findings),
        )
        for finding in own:
            write_prediction(database, run, finding)

    def _close_database(self) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def close(self) -> None:
        """Write what is pending and let go."""
        self.commit()
        with self._lock:
            self._close_database()


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

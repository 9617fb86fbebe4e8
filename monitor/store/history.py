"""The reading side of the store: works beside a daemon that writes, and without one."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from monitor.snapshot import Finding, Run, RunState
from monitor.store.chunks import Chunk, Steps
from monitor.store.ledger import COLUMNS, Entry, TrackRecord, entry, track_record
from monitor.store.schema import StoreError, open_readonly

MAX_STEPS = 100_000
MAX_POINTS = 10_000
_run_decoder = msgspec.json.Decoder(Run)
_findings_decoder = msgspec.json.Decoder(tuple[Finding, ...])


class RunRecord(msgspec.Struct, frozen=True):
    """A run as it was last seen, with its findings."""

    run: Run
    findings: tuple[Finding, ...] = ()
    updated: float = 0.0


class Series(msgspec.Struct, frozen=True):
    """One reading over time; an entry of `time` is the begin of its interval."""

    subject: str
    """gpu:UUID, host, or run:ID."""
    field: str
    time: tuple[float, ...]
    low: tuple[float, ...]
    mean: tuple[float, ...]
    high: tuple[float, ...]


class HistoryPage(msgspec.Struct, frozen=True):
    """All readings of a stretch of time at one resolution."""

    start: float
    end: float
    seconds: float
    """Width of an interval."""
    series: tuple[Series, ...] = ()


class History:
    """Queries. Each thread has its own connection; a history that does not exist yet is empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Raises `StoreError` when the file cannot be read."""
        if not self.path.exists():
            return []
        try:
            return self._connection().execute(sql, values).fetchall()
        except sqlite3.Error as error:
            self._local.connection = None
            raise StoreError(f"the history {self.path} cannot be read: {error}") from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = open_readonly(self.path)
        return connection

    def runs(self, *, limit: int = 1000, state: RunState | None = None) -> list[RunRecord]:
        """The newest first."""
        rows = self._rows(
            "SELECT state, ended_us, updated_us, body, findings FROM runs"
            " WHERE ?1 IS NULL OR state = ?1 ORDER BY started_us DESC LIMIT ?2",
            (state, limit),
        )
        return [record for row in rows if (record := _record(row)) is not None]

    def run(self, run: str) -> RunRecord | None:
        rows = self._rows("SELECT state, ended_us, updated_us, body, findings FROM runs WHERE id = ?", (run,))
        return _record(rows[0]) if rows else None

    def findings(self, run: str) -> tuple[Finding, ...]:
        record = self.run(run)
        return record.findings if record else ()

    def steps(self, run: str, rank: int = 0, *, after: int = 0, limit: int = MAX_STEPS) -> Steps:
        """Steps with a number above `after`, oldest first, at most about `limit` (whole batches)."""
        found = Steps()
        rings = self._rows(
            "SELECT id, phases FROM rings WHERE run = ? AND rank = ? AND kind = 'trainer'"
            " ORDER BY updated_us DESC LIMIT 1",
            (run, rank),
        )
        for ring, phases in rings:
            names = msgspec.json.decode(phases, type=list[str])
            for chunk in self._chunks(ring, after, min(limit, MAX_STEPS)):
                found.extend(chunk, names)
        return _clipped(found.finish(), after, limit)

    def _chunks(self, ring: int, after: int, limit: int) -> list[Chunk]:
        rows = self._rows(
            "SELECT first, count, begin_us, end_us, columns FROM chunks"
            " WHERE ring = ? AND first + count - 1 > ? ORDER BY first LIMIT ?",
            (ring, after, limit),
        )
        taken: list[Chunk] = []
        steps = 0
        for row in rows:
            if steps > limit:
                break
            taken.append(Chunk(*row))
            steps += row[1]
        return taken

    def history(
        self, start: float, end: float, points: int = 500, *, subject: str | None = None
    ) -> HistoryPage:
        """Readings between two wall times in at most `points` intervals: min, mean and max of each."""
        points = max(1, min(points, MAX_POINTS))
        width = max(1, int((end - start) * 1e6) // points)
        limits = (int(start * 1e6), int(end * 1e6), width)
        names = {
            id: (of, field)
            for id, of, field in self._rows("SELECT id, subject, field FROM series")
            if subject is None or of == subject
        }
        rows = [row for id in names for row in self._points(id, limits)]
        return HistoryPage(start, end, width / 1e6, _series(rows, names, start, width / 1e6))

    def _points(self, series: int, limits: tuple[int, int, int]) -> list[Any]:
        """One series in intervals; by series, so that the primary key does the work."""
        return self._rows(
            """
            SELECT ?4, at, min(low), sum(mean * samples) / sum(samples), max(high) FROM (
                SELECT (time_us - ?1) / ?3 AS at, low, mean, high, samples FROM rollups
                WHERE series = ?4 AND time_us >= ?1 AND time_us < ?2
                UNION ALL
                SELECT (time_us - ?1) / ?3, value, value, value, 1 FROM readings
                WHERE series = ?4 AND time_us >= ?1 AND time_us < ?2
            ) GROUP BY at ORDER BY at
            """,
            (*limits, series),
        )

    def ledger(self, *, rule: str | None = None, run: str | None = None, limit: int = 1000) -> list[Entry]:
        """The newest first."""
        rows = self._rows(
            f"SELECT {COLUMNS} FROM ledger WHERE (?1 IS NULL OR rule = ?1) AND (?2 IS NULL OR run = ?2)"
            " ORDER BY predicted_us DESC LIMIT ?3",
            (rule, run, limit),
        )
        return [entry(row) for row in rows]

    def track_record(self, rule: str) -> TrackRecord:
        """Predicted against realised for one rule."""
        return track_record(rule, self.ledger(rule=rule, limit=10_000))

    def track_records(self) -> list[TrackRecord]:
        rules = self._rows("SELECT DISTINCT rule FROM ledger ORDER BY rule")
        return [self.track_record(rule) for (rule,) in rules]


def _record(row: tuple[Any, ...]) -> RunRecord | None:
    """A run whose JSON an older version wrote in another shape is left out, not an error."""
    state, ended_us, updated_us, body, findings = row
    try:
        run = _run_decoder.decode(body)
        found = _findings_decoder.decode(findings)
    except msgspec.MsgspecError:
        return None
    ended = ended_us / 1e6 if ended_us is not None else None
    return RunRecord(msgspec.structs.replace(run, state=state, ended=ended), found, updated_us / 1e6)


def _series(
    rows: list[Any], names: dict[int, tuple[str, str]], start: float, width: float
) -> tuple[Series, ...]:
    grouped: dict[int, list[Any]] = {}
    for series, *point in rows:
        grouped.setdefault(series, []).append(point)
    found = []
    for series, points in grouped.items():
        at, low, mean, high = zip(*points, strict=True)
        found.append(Series(*names[series], tuple(start + n * width for n in at), low, mean, high))
    return tuple(sorted(found, key=lambda one: (one.subject, one.field)))


def _clipped(steps: Steps, after: int, limit: int) -> Steps:
    first = next((at for at, step in enumerate(steps.step) if step > after), len(steps.step))
    for name in ("step", "begin", "seconds", "flags", "samples", "tokens"):
        setattr(steps, name, getattr(steps, name)[first : first + limit])
    steps.phases = {name: column[first : first + limit] for name, column in steps.phases.items()}
    return steps

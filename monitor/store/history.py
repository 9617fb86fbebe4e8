"""The reading side of the store: works alongside a writing daemon, and without one."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from monitor.model.decoders import decoder
from monitor.model.facts import complete_record
from monitor.model.finding import Finding
from monitor.model.history import HistoryPage, RunRecord, Series
from monitor.model.owner import own_uid
from monitor.model.run import Run, RunState
from monitor.model.steps import Columns
from monitor.store.chunks import BrokenChunk, Chunk, Steps, unpack
from monitor.store.corrupt import BROKEN_ROW, readable
from monitor.store.ledger import COLUMNS, Entry, TrackRecord, entry, track_record
from monitor.store.schema import StoreError, open_readonly

MAX_STEPS = 100_000
MAX_POINTS = 10_000
"""Our choices: rows per answer, a few megabytes of JSON."""
CASES = 3
"""Fewer realised gains than this say nothing about a rule's quality."""
MOST_PREDICTIONS = 100_000
"""Entries of the ledger read for track records."""


class History:
    """Queries. Each thread has its own connection; a history that does not exist yet is empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Raises `StoreError` if the file cannot be read."""
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

    def runs(
        self, *, limit: int = 1000, state: RunState | None = None, owner: int | None = None
    ) -> list[RunRecord]:
        """Newest first."""
        rows = self._rows(
            "SELECT state, ended_us, updated_us, body, findings FROM runs"
            " WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR owner = ?2)"
            " ORDER BY started_us DESC LIMIT ?3",
            (state, owner, limit),
        )
        return list(readable(rows, _record))

    def runs_of_script(self, script: str, name: str, owner: int, limit: int) -> list[RunRecord]:
        """One user's runs that ended without failing, newest first."""
        rows = self._rows(
            "SELECT state, ended_us, updated_us, body, findings FROM runs"
            " WHERE owner = ? AND state = 'ended' AND script = ? AND name = ?"
            " ORDER BY started_us DESC LIMIT ?",
            (owner, script, name, limit),
        )
        return list(readable(rows, _record))

    def run(self, run: str) -> RunRecord | None:
        """If several owners have a run with this id (daemons of different users kept this history), ours."""
        rows = self._rows(
            "SELECT state, ended_us, updated_us, body, findings FROM runs WHERE id = ?"
            " ORDER BY owner = ? DESC, updated_us DESC LIMIT 1",
            (run, own_uid()),
        )
        return next(readable(rows, _record), None)

    def steps(self, run: str, rank: int = 0, *, after: int = 0, limit: int = MAX_STEPS) -> Steps:
        """Steps numbered above `after`, oldest first, at most about `limit` (whole batches)."""
        found = Steps()
        for ring, phases in self._ring_of(run, rank):
            with contextlib.suppress(*BROKEN_ROW):
                names = msgspec.json.decode(phases, type=list[str])
                for chunk in self._chunks(ring, after, min(limit, MAX_STEPS)):
                    _add(found, chunk, names)
        return _clipped(found.finish(), after, limit)

    def _ring_of(self, run: str, rank: int) -> list[Any]:
        """The one of this rank, if it is known: its id, and the names of its phases."""
        return self._rows(
            "SELECT id, phases FROM rings WHERE run = ? AND rank = ? AND kind = 'trainer'"
            " ORDER BY owner = ? DESC, updated_us DESC LIMIT 1",
            (run, rank, own_uid()),
        )

    def _chunks(self, ring: int, after: int, limit: int) -> list[Chunk]:
        rows = self._rows(
            "SELECT first, count, begin_us, end_us, columns FROM chunks"
            " WHERE ring = ? AND first + count - 1 > ? ORDER BY first LIMIT ?",
            (ring, after, limit),
        )
        taken: list[Chunk] = []
        steps = 0
        for chunk in readable(rows, Chunk.of):
            if steps > limit:
                break
            taken.append(chunk)
            steps += chunk.count
        return taken

    def columns(
        self, run: str, start: float, end: float, rank: int = 0
    ) -> tuple[tuple[str, ...], list[Columns]]:
        """The names of its phases, and the steps that ended between two wall times, on the wall's clock; none
        if there are too many for one answer."""
        for ring, phases in self._ring_of(run, rank):
            with contextlib.suppress(*BROKEN_ROW):
                names = msgspec.json.decode(phases, type=tuple[str, ...])
                return names, self._columns(ring, int(start * 1e6), int(end * 1e6))
        return (), []

    def _columns(self, ring: int, start_us: int, end_us: int) -> list[Columns]:
        rows = self._rows(
            "SELECT first, count, begin_us, end_us, columns FROM chunks"
            " WHERE ring = ? AND end_us > ? AND begin_us < ? ORDER BY first",
            (ring, start_us, end_us),
        )
        chunks = list(readable(rows, Chunk.of))
        if sum(chunk.count for chunk in chunks) > MAX_STEPS:
            return []
        return [part for chunk in chunks for part in _unpacked(chunk, start_us * 1000, end_us * 1000)]

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
            if (subject is None or of == subject) and isinstance(of, str) and isinstance(field, str)
        }
        rows = [row for id in names for row in self._points(id, limits) if _is_point(row)]
        return HistoryPage(start, end, width / 1e6, _series(rows, names, start, width / 1e6))

    def _points(self, series: int, limits: tuple[int, int, int]) -> list[Any]:
        """One series in intervals; queried per series, so that the primary key does the work."""
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
        """Newest first."""
        rows = self._rows(
            f"SELECT {COLUMNS} FROM ledger WHERE (?1 IS NULL OR rule = ?1) AND (?2 IS NULL OR run = ?2)"
            " ORDER BY predicted_us DESC LIMIT ?3",
            (rule, run, limit),
        )
        return list(readable(rows, entry))

    def track_records(self) -> list[TrackRecord]:
        """Predicted versus realised, for each rule and kind of machine."""
        grouped: dict[tuple[str, str | None], list[Entry]] = {}
        for one in self.ledger(limit=MOST_PREDICTIONS):
            grouped.setdefault((one.rule, one.host_kind), []).append(one)
        ordered = sorted(grouped, key=lambda key: (key[0], key[1] or ""))
        return [track_record(*key, grouped[key]) for key in ordered]

    def errors(self) -> dict[str | None, dict[str, float]]:
        """Kind of machine → rule → how far its predictions were off there, if there are enough cases."""
        found: dict[str | None, dict[str, float]] = {}
        for one in self.track_records():
            if one.realised >= CASES and one.median_error is not None:
                found.setdefault(one.host_kind, {})[one.rule] = one.median_error
        return found


def _add(found: Steps, chunk: Chunk, names: Sequence[str]) -> None:
    """A chunk corrupted by a bad disk is left out rather than raised as an error."""
    with contextlib.suppress(BrokenChunk):
        found.extend(chunk, names)


def _unpacked(chunk: Chunk, start_ns: int, end_ns: int) -> Iterator[Columns]:
    """A chunk's steps that ended in this time; nothing if it is corrupt."""
    with contextlib.suppress(BrokenChunk):
        columns = unpack(chunk, 0)
        columns.keep([start_ns < end <= end_ns for end in columns.end])
        yield columns


def _record(row: tuple[Any, ...]) -> RunRecord:
    """Raises if it is corrupt or an older version wrote its JSON in another shape; the row is then left
    out."""
    state, ended_us, updated_us, body, findings = row
    ended = ended_us / 1e6 if ended_us is not None else None
    run = msgspec.structs.replace(
        decoder(Run).decode(body), state=msgspec.convert(state, RunState), ended=ended
    )
    return complete_record(RunRecord(run, decoder(tuple[Finding, ...]).decode(findings), updated_us / 1e6))


def _is_point(row: tuple[Any, ...]) -> bool:
    return all(isinstance(value, int | float) for value in row)


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

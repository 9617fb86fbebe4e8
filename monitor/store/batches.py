"""Batches of steps in the database, each with the position reached in its ring: writing and reading."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from monitor.model.records import RingIdentity
from monitor.model.snapshot import encode
from monitor.store.chunks import Chunk
from monitor.store.corrupt import readable

Batch = tuple[RingIdentity, Chunk | None, bytes]
"""The ring, the steps (None: all of them lost), and the ring's counters after them as JSON."""
MAX_REPLAY = 200_000
"""At most this many steps are replayed after a restart, so that starting does not take long."""


def write_batches(database: sqlite3.Connection, batches: Sequence[Batch], left: dict[str, int]) -> None:
    """Writes all batches in the caller's transaction. `left`: ring key → when this process last wrote to
    it."""
    now_us = time.time_ns() // 1000
    ids: dict[str, int] = {}
    strangers: set[int] = set()
    for key, (ring, counters) in {r.key: (r, c) for r, _, c in batches}.items():
        found = database.execute("SELECT updated_us FROM rings WHERE key = ?", (key,)).fetchone()
        ids[key] = _ring_id(database, ring, counters, now_us)
        if found is not None and found[0] != left.get(key):
            strangers.add(ids[key])
    rows = [
        (ids[ring.key], chunk.first, chunk.count, chunk.begin_us, chunk.end_us, chunk.packed)
        for ring, chunk, _ in batches
        if chunk is not None
    ]
    for ring_id in strangers:
        _clear_overlap(database, ring_id, min((row[1] for row in rows if row[0] == ring_id), default=None))
    database.executemany("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?, ?)", rows)
    left |= dict.fromkeys(ids, now_us)


def _clear_overlap(database: sqlite3.Connection, ring: int, first: int | None) -> None:
    """A ring that could not be resumed (the database failed at the time), or that another process has since
    written to, is rewritten from here: what was stored of that range is deleted first."""
    if first is not None:
        database.execute("DELETE FROM chunks WHERE ring = ? AND first + count > ?", (ring, first))


def _ring_id(database: sqlite3.Connection, ring: RingIdentity, counters: bytes, now_us: int) -> int:
    """Store how far this ring has been read; returns its row's id."""
    row = database.execute(
        "INSERT INTO rings (key, run, rank, kind, phases, counters, updated_us, owner)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
        " phases = excluded.phases, counters = excluded.counters, updated_us = excluded.updated_us"
        " RETURNING id",
        (
            ring.key, ring.run, ring.rank, ring.kind, encode(ring.phases).decode(), counters, now_us,
            ring.owner,
        ),
    ).fetchone()  # fmt: skip
    return int(row[0])


def stored_chunks(database: sqlite3.Connection, ring: RingIdentity) -> list[Chunk]:
    """The latest steps of a ring, oldest first."""
    rows = database.execute(
        "SELECT first, count, begin_us, end_us, columns FROM chunks"
        " WHERE ring = (SELECT id FROM rings WHERE key = ?) ORDER BY first DESC LIMIT ?",
        (ring.key, MAX_REPLAY),
    )
    chunks: list[Chunk] = []
    steps = 0
    for chunk in readable(rows, Chunk.of):
        steps += chunk.count
        if steps > MAX_REPLAY:
            break
        chunks.append(chunk)
    return chunks[::-1]

"""What history lets go of: by age, and when it is too large the oldest steps first.

Readings older than two hours become one-minute rows of min, mean and max; steps of a run go long
before the run itself does.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

MINUTE_US = 60 * 10**6
READINGS_KEEP_US = 2 * 3600 * 10**6
STEPS_KEEP_SHARE = 0.25
"""Steps are kept for this share of the age limit."""
ROOM = 0.95
"""A database over its limit is brought to this share of it."""
DELETE_AT_ONCE = 64
SLICE_SECONDS = 0.1
"""Longest a tick is held up by deleting; the rest is done in the next ones."""
VACUUM_PAGES = 1024


def roll_up(database: sqlite3.Connection, now_us: int) -> None:
    """Readings older than `READINGS_KEEP_US` into whole minutes."""
    before = (now_us - READINGS_KEEP_US) // MINUTE_US * MINUTE_US
    database.execute(
        """
        INSERT INTO rollups
        SELECT series, time_us / :minute * :minute AS at, min(value), avg(value), max(value), count(*)
        FROM readings WHERE time_us < :before GROUP BY series, at
        ON CONFLICT (series, time_us) DO UPDATE SET
            low = min(low, excluded.low), high = max(high, excluded.high),
            mean = (mean * samples + excluded.mean * excluded.samples) / (samples + excluded.samples),
            samples = samples + excluded.samples
        """,
        {"minute": MINUTE_US, "before": before},
    )
    database.execute("DELETE FROM readings WHERE time_us < ?", (before,))


def drop_old(database: sqlite3.Connection, now_us: int, max_age: float) -> None:
    age_us = int(max_age * 1e6)
    gone = (now_us - age_us,)
    database.execute("DELETE FROM chunks WHERE ring IN (SELECT id FROM rings WHERE updated_us < ?)", gone)
    database.execute("DELETE FROM chunks WHERE end_us < ?", (now_us - int(age_us * STEPS_KEEP_SHARE),))
    for table, column in (("rollups", "time_us"), ("runs", "updated_us"), ("rings", "updated_us")):
        database.execute(f"DELETE FROM {table} WHERE {column} < ?", gone)
    database.execute(
        "DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM rollups WHERE series = series.id)"
        " AND NOT EXISTS (SELECT 1 FROM readings WHERE series = series.id)"
    )


def used_bytes(database: sqlite3.Connection) -> int:
    """Pages in use; what is free inside the file is not counted, it is given back below."""
    page, pages, free = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_size", "page_count", "freelist_count")
    )
    return page * (pages - free)


def shrink(database: sqlite3.Connection, max_bytes: int) -> bool:
    """Drop the oldest steps, then the oldest minutes, then the oldest runs until it fits again. True:
    time was up before it did."""
    deadline = time.monotonic() + SLICE_SECONDS
    for table, order in (("chunks", "end_us"), ("rollups", "time_us"), ("runs", "updated_us")):
        while used_bytes(database) > ROOM * max_bytes:
            if time.monotonic() > deadline:
                return True
            if not _drop_oldest(database, table, order):
                break
    return False


def _drop_oldest(database: sqlite3.Connection, table: str, order: str) -> int:
    """Everything up to the n-th oldest time; returns how many rows went."""
    row = database.execute(
        f"SELECT max({order}) FROM (SELECT {order} FROM {table} ORDER BY {order} LIMIT {DELETE_AT_ONCE})"
    ).fetchone()
    if row[0] is None:
        return 0
    return database.execute(f"DELETE FROM {table} WHERE {order} <= ?", row).rowcount


def give_back(database: sqlite3.Connection) -> bool:
    """Some free pages back to the file system, and the log into the file. True: there are more."""
    # execute() would stop after one page
    database.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES});")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return int(database.execute("PRAGMA freelist_count").fetchone()[0]) > VACUUM_PAGES


def file_bytes(path: Path) -> int:
    """Size on disk with the log."""
    found = 0
    for suffix in ("", "-wal"):
        try:
            found += os.stat(f"{path}{suffix}").st_size
        except OSError:
            continue
    return found

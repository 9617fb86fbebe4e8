"""What the history drops: by age and, when it is too large, the oldest data of the largest owner first.

Readings older than two hours become one-minute rows of min, mean and max; a run's steps go long before the
run itself.
"""

from __future__ import annotations

import sqlite3
import time
from functools import partial

MINUTE_US = 60 * 10**6
READINGS_KEEP_US = 2 * 3600 * 10**6
"""Our choice: after two hours one value per minute is enough."""
STEPS_KEEP_SHARE = 0.25
"""Steps are kept for this share of the age limit."""
ROOM = 0.95
"""A database over its limit is reduced to this share of it."""
DELETE_AT_ONCE = 64
"""Our choice: rows per statement, so that a slice ends in time."""
SLICE_SECONDS = 0.1
"""Longest a tick may be held up by deleting; the rest is done in later ticks."""
VACUUM_PAGES = 1024
"""Our choice: 4 MiB per call."""
RUNS_SHARE = 0.25
"""Share of the limit: an owner's runs beyond this go before anybody's steps."""
MAX_PREDICTIONS, MAX_SERIES = 10_000, 50_000
"""Per owner, however many runs they have."""


def roll_up(database: sqlite3.Connection, now_us: int) -> None:
    """Aggregate readings older than `READINGS_KEEP_US` into whole minutes."""
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
    database.execute("DELETE FROM ledger WHERE realised IS NULL AND predicted_us < ?", gone)
    database.execute(
        "DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM rollups WHERE series = series.id)"
        " AND NOT EXISTS (SELECT 1 FROM readings WHERE series = series.id)"
    )


def drop_surplus(database: sqlite3.Connection) -> None:
    """Drops predictions and series of owners who have too many, oldest first: unlike steps and runs they have
    no per-minute limit, so anybody starting enough runs could fill the history with them."""
    database.execute(f"DELETE FROM ledger WHERE id IN ({_beyond('ledger', 'owner')})", (MAX_PREDICTIONS,))
    owner = "substr(subject, instr(subject || '@', '@'))"  # from the run's id; our own have none
    surplus = _beyond("series", owner, "WHERE subject LIKE 'run:%'")
    gone = database.execute(surplus, (MAX_SERIES,)).fetchall()
    for table, column in (("rollups", "series"), ("readings", "series"), ("series", "id")):
        database.executemany(f"DELETE FROM {table} WHERE {column} = ?", gone)


def _beyond(table: str, owner: str, where: str = "") -> str:
    """Ids of each owner's rows beyond the newest ones; the number is the query's parameter."""
    places = f"row_number() OVER (PARTITION BY {owner} ORDER BY id DESC) AS place"
    return f"SELECT id FROM (SELECT id, {places} FROM {table} {where}) WHERE place > ?"


def used_bytes(database: sqlite3.Connection) -> int:
    """Pages in use; free space inside the file does not count, since `give_back` returns it."""
    page, pages, free = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_size", "page_count", "freelist_count")
    )
    return page * (pages - free)


def shrink(database: sqlite3.Connection, max_bytes: int) -> bool:
    """Drop the oldest steps and runs of the largest owner, then the oldest minutes, then the oldest runs,
    until it fits again. True: time ran out first."""
    deadline = time.monotonic() + SLICE_SECONDS
    for drop in (
        partial(_drop_of_largest, max_bytes=max_bytes),
        partial(_drop_oldest, table="rollups", order="time_us"),
        partial(_drop_oldest, table="runs", order="updated_us"),
    ):
        while used_bytes(database) > ROOM * max_bytes:
            if time.monotonic() > deadline:
                return True
            if not drop(database):
                break
    return False


def _drop_of_largest(database: sqlite3.Connection, max_bytes: int) -> int:
    """Drop the oldest steps of the owner with the most data, or their runs if those alone are too much;
    returns how many rows were deleted."""
    steps = "SELECT owner, sum(bytes) AS steps, 0 AS runs FROM rings GROUP BY owner"
    runs = "SELECT owner, 0, sum(length(body) + length(findings)) FROM runs GROUP BY owner"
    owners = database.execute(
        f"SELECT owner, sum(steps), sum(runs) FROM ({steps} UNION ALL {runs}) GROUP BY owner"
        " ORDER BY sum(steps) + sum(runs) DESC"
    ).fetchall()
    for owner, of_steps, of_runs in owners:
        if of_runs > max(of_steps, RUNS_SHARE * max_bytes):
            return _drop_runs(database, owner)
        if of_steps > 0:
            return _drop_steps(database, owner)
    return 0


def _drop_steps(database: sqlite3.Connection, owner: int) -> int:
    oldest = "(SELECT end_us FROM chunks WHERE ring = rings.id ORDER BY first LIMIT 1)"
    ring = database.execute(
        f"SELECT id FROM rings WHERE owner = ? AND bytes > 0 ORDER BY {oldest} LIMIT 1", (owner,)
    ).fetchone()
    first = "SELECT first FROM chunks WHERE ring = ?1 ORDER BY first LIMIT ?2"
    gone = database.execute(
        f"DELETE FROM chunks WHERE ring = ?1 AND first IN ({first})", (ring[0], DELETE_AT_ONCE)
    ).rowcount
    if not gone:  # nothing is there, whatever the counter says
        database.execute("UPDATE rings SET bytes = 0 WHERE id = ?", ring)
    return max(1, gone)


def _drop_runs(database: sqlite3.Connection, owner: int) -> int:
    oldest = "SELECT id FROM runs WHERE owner = ?1 ORDER BY updated_us LIMIT ?2"
    return database.execute(
        f"DELETE FROM runs WHERE owner = ?1 AND id IN ({oldest})", (owner, DELETE_AT_ONCE)
    ).rowcount


def _drop_oldest(database: sqlite3.Connection, table: str, order: str) -> int:
    """Delete everything up to the n-th oldest time; returns how many rows were deleted."""
    row = database.execute(
        f"SELECT max({order}) FROM (SELECT {order} FROM {table} ORDER BY {order} LIMIT {DELETE_AT_ONCE})"
    ).fetchone()
    if row[0] is None:
        return 0
    return database.execute(f"DELETE FROM {table} WHERE {order} <= ?", row).rowcount


def give_back(database: sqlite3.Connection) -> bool:
    """Return some free pages to the file system and merge the log into the file. True: there are more."""
    # execute() would stop after one page
    database.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES});")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return int(database.execute("PRAGMA freelist_count").fetchone()[0]) > VACUUM_PAGES

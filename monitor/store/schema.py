"""The database: its tables, version by version, and how it is opened.

Times are integer µs. `MIGRATIONS[n]` takes a database from version n to n + 1; a new database runs all of
them, so there is one description of the schema and the upgrade path is always tested.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from monitor.model.owner import own_uid

APPLICATION_ID = 0x67706D6E  # "gpmn"
SIDE_FILES = ("", "-wal", "-shm")
PRIVATE = 0o600
BUSY_SECONDS = 5.0
"""Our choice: a reader waits this long for a writer."""
WRITER_BUSY_SECONDS = 1.0
"""A tick waits this long for another writer; after that its batch waits for the next tick."""

MIGRATIONS = (
    """
    CREATE TABLE rings (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, run TEXT NOT NULL, rank INTEGER NOT NULL,
        kind TEXT NOT NULL, phases TEXT NOT NULL, counters BLOB NOT NULL, updated_us INTEGER NOT NULL);
    CREATE INDEX rings_run ON rings (run, rank);
    CREATE TABLE chunks (
        ring INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, begin_us INTEGER NOT NULL,
        end_us INTEGER NOT NULL, columns BLOB NOT NULL, PRIMARY KEY (ring, first)) WITHOUT ROWID;
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL, started_us INTEGER NOT NULL,
        ended_us INTEGER, updated_us INTEGER NOT NULL, script TEXT, body BLOB NOT NULL,
        findings BLOB NOT NULL);
    CREATE INDEX runs_started ON runs (started_us);
    CREATE TABLE series (
        id INTEGER PRIMARY KEY, subject TEXT NOT NULL, field TEXT NOT NULL, UNIQUE (subject, field));
    CREATE TABLE readings (
        series INTEGER NOT NULL, time_us INTEGER NOT NULL, value REAL NOT NULL,
        PRIMARY KEY (series, time_us)) WITHOUT ROWID;
    CREATE TABLE rollups (
        series INTEGER NOT NULL, time_us INTEGER NOT NULL, low REAL NOT NULL, mean REAL NOT NULL,
        high REAL NOT NULL, samples INTEGER NOT NULL, PRIMARY KEY (series, time_us)) WITHOUT ROWID;
    """,
    """
    CREATE TABLE ledger (
        id INTEGER PRIMARY KEY, run TEXT NOT NULL, rule TEXT NOT NULL, subject TEXT NOT NULL,
        script TEXT, low REAL NOT NULL, likely REAL NOT NULL, high REAL NOT NULL,
        predicted_us INTEGER NOT NULL, after_run TEXT, realised REAL, realised_low REAL,
        realised_high REAL, realised_us INTEGER, way TEXT, UNIQUE (run, rule, subject));
    CREATE INDEX ledger_rule ON ledger (rule);
    CREATE INDEX chunks_end ON chunks (end_us);
    CREATE INDEX readings_time ON readings (time_us);
    CREATE INDEX rollups_time ON rollups (time_us);
    """,
    """
    ALTER TABLE ledger RENAME COLUMN way TO seen_in;
    UPDATE ledger SET seen_in =
        CASE seen_in WHEN 'compare' THEN 'later_run' WHEN 'change' THEN 'same_run' END;
    """,
    # A realised gain is kept with the observed difference and the kind of machine; older ones had neither.
    """
    UPDATE ledger SET realised = NULL, realised_low = NULL, realised_high = NULL, realised_us = NULL,
        after_run = NULL, seen_in = NULL;
    ALTER TABLE ledger RENAME COLUMN seen_in TO changed;
    ALTER TABLE ledger ADD COLUMN host_kind TEXT;
    """,
    # Rows get an owner; the owner of existing ones is unknown.
    """
    ALTER TABLE rings ADD COLUMN owner INTEGER NOT NULL DEFAULT -1;
    ALTER TABLE rings ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE rings SET bytes = (SELECT coalesce(sum(length(columns)), 0) FROM chunks WHERE ring = rings.id);
    CREATE TRIGGER chunk_kept AFTER INSERT ON chunks BEGIN
        UPDATE rings SET bytes = bytes + length(NEW.columns) WHERE id = NEW.ring; END;
    CREATE TRIGGER chunk_dropped AFTER DELETE ON chunks BEGIN
        UPDATE rings SET bytes = bytes - length(OLD.columns) WHERE id = OLD.ring; END;
    CREATE TABLE owned_runs (
        id TEXT NOT NULL, owner INTEGER NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
        started_us INTEGER NOT NULL, ended_us INTEGER, updated_us INTEGER NOT NULL, script TEXT,
        body BLOB NOT NULL, findings BLOB NOT NULL, PRIMARY KEY (id, owner));
    INSERT INTO owned_runs
        SELECT id, -1, name, state, started_us, ended_us, updated_us, script, body, findings FROM runs;
    DROP TABLE runs;
    ALTER TABLE owned_runs RENAME TO runs;
    CREATE INDEX runs_started ON runs (started_us);
    CREATE TABLE owned_ledger (
        id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, run TEXT NOT NULL, rule TEXT NOT NULL,
        subject TEXT NOT NULL, script TEXT, low REAL NOT NULL, likely REAL NOT NULL, high REAL NOT NULL,
        predicted_us INTEGER NOT NULL, after_run TEXT, realised REAL, realised_low REAL,
        realised_high REAL, realised_us INTEGER, changed TEXT, host_kind TEXT,
        UNIQUE (owner, run, rule, subject));
    INSERT INTO owned_ledger
        SELECT id, -1, run, rule, subject, script, low, likely, high, predicted_us, after_run, realised,
            realised_low, realised_high, realised_us, changed, host_kind FROM ledger;
    DROP TABLE ledger;
    ALTER TABLE owned_ledger RENAME TO ledger;
    CREATE INDEX ledger_rule ON ledger (rule);
    CREATE TABLE clock (
        only INTEGER PRIMARY KEY CHECK (only = 1), boot TEXT NOT NULL, clock_offset REAL,
        unsettled_until REAL NOT NULL);
    """,
)
VERSION = len(MIGRATIONS)


class StoreError(Exception):
    """History cannot be written or read; the message is one sentence for people."""


def open_writable(path: Path) -> sqlite3.Connection:
    """Open for writing, creating and migrating it as needed. Raises `sqlite3.Error` or `StoreError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _make_private(path)
    database = sqlite3.connect(
        path, timeout=WRITER_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA journal_size_limit = 4194304")
        database.execute("PRAGMA recursive_triggers = ON")  # replacing a chunk also drops one
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def _make_private(path: Path) -> None:
    """Accessible to its owner only; SQLite gives its side files the mode of the main file."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
    for suffix in SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(f"{path}{suffix}")
            if found.st_uid == own_uid() and found.st_mode & 0o077:
                os.chmod(f"{path}{suffix}", PRIVATE)


def migrate(database: sqlite3.Connection) -> None:
    """Bring the file to `VERSION`, one complete step at a time."""
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise StoreError(f"the history has version {version}; this gpumon supports up to {VERSION}")
    for at in range(version, VERSION):
        database.executescript(
            f"BEGIN IMMEDIATE; {MIGRATIONS[at]} PRAGMA user_version = {at + 1};"
            f" PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
        )


def open_readonly(path: Path) -> sqlite3.Connection:
    """Open alongside a writing daemon. Raises `StoreError`."""
    try:
        database = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error as error:
        raise StoreError(f"the history {path} cannot be read: {error}") from error
    if version != VERSION:
        database.close()
        raise StoreError(
            f"the history {path} has version {version}; this gpumon reads {VERSION}: "
            "start its daemon once to bring it up to date"
        )
    return database


def set_aside(path: Path) -> Path:
    """Move a corrupt database and its side files out of the way; returns the new path."""
    target = path.with_name(f"{path.name}.broken-{time.time_ns() // 10**9}")
    for suffix in SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{path}{suffix}", f"{target}{suffix}")
    return target

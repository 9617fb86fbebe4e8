"""Rows of history have an owner, and are never replaced by somebody else's."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import msgspec
import pytest

from monitor.catalog.rows import together
from monitor.model.snapshot import encode
from monitor.store import schema
from monitor.store.schema import open_writable
from monitor.store.store import Store
from tests.unit.store import made

NOW = 1_750_000_000.0
ALICE, MALLORY = 1001, 1002


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state" / "history.db")


def test_a_row_is_replaced_by_its_owner_only(store: Store) -> None:
    """GIVEN a run of Alice's in the history WHEN a run of Mallory's has the same id THEN there are two."""
    hers = made.run(owner_uid=ALICE, script="/home/alice/train.py")
    store.append(made.snapshot(NOW, hers, findings=(made.finding("a.b", 1.0, 1.5, 2.0),)))
    store.append(made.snapshot(NOW + 1, made.run(owner_uid=MALLORY, name="evil", started=3000.0)))
    rows = {(one.run.id, one.run.owner_uid): one.run.name for one in store.runs()}
    assert rows == {("run-1", ALICE): "demo", ("run-1", MALLORY): "evil"}
    assert len(together((), (), store.runs(), NOW)) == 2
    assert [(one.owner_uid, one.script) for one in store.ledger()] == [(ALICE, "/home/alice/train.py")]


def test_another_users_run_verifies_no_prediction(store: Store) -> None:
    """GIVEN a prediction for Alice's script WHEN Mallory's run of the same path ends, faster THEN that proves
    nothing about it."""
    finding = made.no_workers()
    before = made.run(config=made.workers(0), owner_uid=ALICE)
    store.append(made.snapshot(NOW, before, findings=(finding,)))
    after = made.later(rate=190.0, config=made.workers(4), owner_uid=MALLORY)
    store.append(made.snapshot(NOW + 1, made.live(after)))
    store.append(made.snapshot(NOW + 2, after))
    assert [entry.realised for entry in store.ledger()] == [None]
    own = msgspec.structs.replace(after, id="run-3", owner_uid=ALICE)
    store.append(made.snapshot(NOW + 3, made.live(own)))
    store.append(made.snapshot(NOW + 4, own))
    assert [entry.realised for entry in store.ledger()] == [pytest.approx(1.9, rel=0.02)]


def old_database(path: Path) -> None:
    """As version 4 left it: one run with a prediction, its ring and steps."""
    database = sqlite3.connect(path)
    for at in range(4):
        database.executescript(schema.MIGRATIONS[at])
    database.execute("PRAGMA user_version = 4")
    run = made.run()
    body = encode(run)
    times = (int(run.started * 1e6), int((run.ended or 0) * 1e6), int(NOW * 1e6))
    database.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (run.id, run.name, run.state, *times, run.script, body, b"[]"),
    )
    database.execute(
        "INSERT INTO ledger (run, rule, subject, low, likely, high, predicted_us)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (run.id, "a.b", "", 1.0, 1.5, 2.0, int(NOW * 1e6)),
    )
    database.execute(
        "INSERT INTO rings VALUES (1, 'key', ?, 0, 'trainer', '[]', ?, ?)", (run.id, b"{}", int(NOW * 1e6))
    )
    database.execute("INSERT INTO chunks VALUES (1, 1, 1, 0, 1, ?)", (b"x" * 100,))
    database.commit()
    database.close()


def test_an_old_history_keeps_its_rows_until_their_owner_is_known(tmp_path: Path) -> None:
    old_database(tmp_path / "old.db")
    store = Store(tmp_path / "old.db")
    assert store.error is None
    assert [(one.run.id, one.run.owner_uid) for one in store.runs()] == [("run-1", None)]
    other = made.run(owner_uid=MALLORY, started=5000.0, ended=5040.0)
    store.append(made.snapshot(NOW, other))
    assert len(store.runs()) == 2, "not the run the row was made of"
    store.append(made.snapshot(NOW + 1, made.run(owner_uid=ALICE)))
    assert {one.run.owner_uid for one in store.runs()} == {ALICE, MALLORY}, "this is"
    assert [one.owner_uid for one in store.ledger()] == [ALICE]
    store.close()
    database = sqlite3.connect(tmp_path / "old.db")
    assert database.execute("SELECT owner, bytes FROM rings").fetchall() == [(-1, 100)]


def test_history_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Even one that was created with another mode."""
    path = tmp_path / "history.db"
    path.touch(mode=0o644)
    before = os.umask(0)
    try:
        store = Store(path)
        store.append(made.snapshot(NOW, made.run()))
        modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"history.db": 0o600, "history.db-wal": 0o600, "history.db-shm": 0o600}
    store.close()


def test_bytes_of_a_ring_are_those_of_its_chunks(tmp_path: Path) -> None:
    database = open_writable(tmp_path / "history.db")
    database.execute("INSERT INTO rings VALUES (1, 'key', 'r', 0, 'trainer', '[]', x'', 0, 7, 0)")
    for first, size in ((1, 100), (2, 50), (1, 30)):  # the first is replaced
        database.execute("INSERT OR REPLACE INTO chunks VALUES (1, ?, 1, 0, 1, ?)", (first, b"x" * size))
    assert database.execute("SELECT bytes FROM rings").fetchone() == (80,)
    database.execute("DELETE FROM chunks WHERE first = 2")
    assert database.execute("SELECT bytes FROM rings").fetchone() == (30,)
    database.close()


def test_a_run_that_cannot_be_kept_costs_nobody_else_a_row(tmp_path: Path) -> None:
    """GIVEN figures of one user's run that no database can hold THEN the others' rows are written, and the
    owner of the missing one is reported."""
    store = Store(tmp_path / "history.db")
    nan = float("nan")
    good, bad = made.run("good", owner_uid=7), made.run("bad", owner_uid=8, samples_per_second=nan)
    late = made.run("late", owner_uid=8, started=1e15)
    promise = made.finding("a.b", nan, nan, nan, run="bad")
    live = [msgspec.structs.replace(one, state="running", ended=None) for one in (bad, late, good)]
    store.append(made.snapshot(1_750_000_000.0, *live, findings=(promise,)))
    assert store.error is None and store.run("good") is not None
    assert [(one.owner_uid, one.reason) for one in store.spending.trouble()] == [(8, "row")]
    store.close()


def test_a_mistake_in_a_transaction_leaves_none_open(tmp_path: Path) -> None:
    store = Store(tmp_path / "history.db")

    def fails(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM runs")
        raise MemoryError

    store.append(made.snapshot(1_750_000_000.0, made.run("kept")))
    with pytest.raises(MemoryError):
        store._write(fails)
    store.append(made.snapshot(1_750_000_001.0, made.run("next")))
    assert store.error is None and {one.run.id for one in store.runs()} == {"kept", "next"}
    store.close()


def test_a_row_that_was_rolled_back_is_written_again(tmp_path: Path) -> None:
    """GIVEN an ended run WHEN the disk was full the one time it was written THEN it is kept later."""
    store = Store(tmp_path / "history.db")
    snapshot = made.snapshot(NOW, made.run("over"))

    def full(database: sqlite3.Connection) -> None:
        store._write_snapshot(database, snapshot)
        raise sqlite3.OperationalError("database or disk is full")

    assert not store._write(full)
    store.append(snapshot)
    assert store.error is None and store.run("over") is not None
    store.close()

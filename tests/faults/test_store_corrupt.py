"""A history that a bad disk has changed, in a hundred random ways: it opens or is set aside, and never stops
the daemon or a response."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from monitor.model.records import Counters
from monitor.store.schema import StoreError
from monitor.store.store import Store
from tests.unit.store import made
from tests.unit.store.test_spending import noise, ring

NOW = 1_750_000_000.0
WAYS = 100
SIDE_FILES = ("", "-wal", "-shm")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with some of everything, as a killed daemon leaves it: with its side files."""
    folder = tmp_path_factory.mktemp("whole")
    store = Store(folder / "live.db")
    for at in range(30):
        store.records(ring(7), noise(200, 1 + at * 200), Counters(read=(at + 1) * 200))
        store.commit()
        run = made.run(f"run-{at}", started=1000.0 + at, owner_uid=7)
        store.append(made.snapshot(NOW + at, run, findings=(made.finding("a.b", 1.0, 1.5, 2.0, run.id),)))
        if at == 20:
            store.maintain(NOW + 3 * 3600)
    for suffix in SIDE_FILES:
        shutil.copy(f"{folder}/live.db{suffix}", f"{folder}/whole.db{suffix}")
    store.close()
    return folder / "whole.db"


def damage(path: Path, draw: random.Random) -> str:
    """Change one of its files in one way, or one of its values; returns what was done."""
    return damage_cells(path, draw) if draw.random() < 0.3 else damage_file(path, draw)


def damage_cells(path: Path, draw: random.Random) -> str:
    """Values of a type that was never written, as a changed byte in a row's header produces them."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = draw.choice(tables)
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if not row[5]]
        column = draw.choice(columns)
        value = draw.choice((b"\xff\x00\xfe", "text", "", -1, 2**62, 1e300, b"", "[]", "{}"))
        with contextlib.suppress(sqlite3.IntegrityError), database:
            database.execute("PRAGMA ignore_check_constraints = ON")
            database.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
    return f"{table}.{column} = {value!r}"


def damage_file(path: Path, draw: random.Random) -> str:
    target = Path(f"{path}{draw.choice(('', '', '', '-wal', '-shm'))}")
    raw = bytearray(target.read_bytes())
    kind = draw.choice(("bytes", "bytes", "block", "zeros", "cut", "head", "tail", "swap"))
    at = draw.randrange(len(raw))
    if kind == "bytes":
        for _ in range(draw.choice((1, 10, 1000))):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
    elif kind == "block":
        raw[at : at + 4096] = draw.randbytes(4096)
    elif kind == "zeros":
        raw[at : at + 4096] = bytes(4096)
    elif kind == "cut":
        del raw[at:]
    elif kind == "head":
        raw[:100] = draw.randbytes(100)
    elif kind == "tail":
        raw += draw.randbytes(5000)
    elif kind == "swap":
        page = 4096
        one, two = (draw.randrange(max(1, len(raw) // page)) * page for _ in range(2))
        raw[one : one + page], raw[two : two + page] = raw[two : two + page], raw[one : one + page]
    target.write_bytes(raw)
    return f"{kind} of {target.name} at {at}"


def ask_everything(store: Store) -> None:
    """Every query; the answer may be that it cannot be read."""
    for question in (
        store.runs,
        store.ledger,
        store.track_records,
        lambda: store.run("run-3"),
        lambda: store.steps("r@7"),
        lambda: store.history(NOW - 100, NOW + 100),
    ):
        try:
            question()
        except StoreError:
            continue


@pytest.mark.parametrize("way", range(WAYS))
def test_a_broken_history_stops_nothing(whole: Path, tmp_path: Path, way: int) -> None:
    path = tmp_path / "history.db"
    for suffix in SIDE_FILES:
        shutil.copy(f"{whole}{suffix}", f"{path}{suffix}")
    done = damage(path, random.Random(way))
    store = Store(path)
    store.resume("7:r")
    list(store.replay(ring(7)))
    ask_everything(store)
    for at in range(3):
        store.records(ring(8, "new"), noise(50, 1 + at * 50), Counters())
        store.commit()
        try:
            store.append(made.snapshot(NOW + 100 + at, made.run("after", owner_uid=8)))
        except StoreError:
            continue
    with contextlib.suppress(StoreError):
        store.maintain(NOW + 200)
    ask_everything(store)
    aside = list(tmp_path.glob("*.broken-*"))
    kept = store.error is None and store.run("after") is not None
    assert kept or aside or store.error, done
    store.close()

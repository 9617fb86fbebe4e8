"""The ledger: what was predicted, what it gained, and what proves nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.model.run import Run
from monitor.store import schema
from monitor.store.ledger import Entry, Realisation
from monitor.store.store import Store
from tests.unit.store import made

NOW = 1_750_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state" / "history.db")


def test_ledger(store: Store) -> None:
    predict(store, 1.5)
    predict(store, 1.6)
    gained = Realisation("run-1", "a.b", "", 1.28, 1.2, 1.4, "run-2", "loader.num_workers 0 → 4")
    store.realised(gained)
    store.realised(msgspec.structs.replace(gained, rule="never.predicted"))
    predict(store, 1.9)
    (entry,) = store.ledger()
    assert (entry.likely, entry.realised, entry.after_run) == (1.6, 1.28, "run-2")
    assert entry.changed == "loader.num_workers 0 → 4" and entry.host_kind == "2 × Some CPU, no GPU"
    (record,) = store.track_records()
    assert (record.rule, record.host_kind) == ("a.b", "2 × Some CPU, no GPU")
    assert (record.predicted, record.realised, record.inside) == (1, 1, 1)
    assert record.median_error == pytest.approx(0.25)


def predict(store: Store, likely: float) -> None:
    """A tick of an ended run whose finding promises this."""
    run = made.run(config=made.workers(0))
    store.append(made.snapshot(NOW, run, findings=(made.finding("a.b", 1.0, likely, 2.0),)))


def test_a_live_run_writes_its_predictions_with_its_row(store: Store) -> None:
    for second, likely in ((0, 1.2), (5, 1.3), (15, 1.4)):
        found = (made.finding("a.b", 1.0, likely, 2.0),)
        store.append(made.snapshot(NOW + second, made.live(made.run()), findings=found))
        (entry,) = store.ledger()
        known = store.run("run-1")
        assert known is not None and known.findings[0].speedup is not None
        assert entry.likely == known.findings[0].speedup.likely
    assert entry.likely == 1.4


def verified(store: Store, before: Run, after: Run) -> Entry:
    """Both runs as a daemon sees them, one after the other, the finding only in the first."""
    store.append(made.snapshot(NOW, before, findings=(made.no_workers(),)))
    store.append(made.snapshot(NOW + 1, made.live(after)))
    store.append(made.snapshot(NOW + 2, after))
    return store.ledger(rule="input.no_workers")[0]


def test_the_next_run_of_a_script_verifies_the_prediction(store: Store) -> None:
    before, after = made.run(config=made.workers(0)), made.later(rate=190.0, config=made.workers(4))
    entry = verified(store, before, after)
    assert entry.realised == pytest.approx(1.9, rel=0.02) and entry.after_run == "run-2"
    assert entry.changed == "loader.num_workers 0 → 4" and entry.inside


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"config": made.workers(0)}),
        ({}, {"state": "failed"}),
        ({}, {"config": made.workers(4) | {"model": {"class": "Big", "parameters": 11}}}),
        ({"state": "running", "ended": None}, {}),
        ({"state": "killed"}, {}),
    ],
    ids=["nothing changed", "crashed", "another model", "still running", "was killed"],
)
def test_what_proves_nothing_is_not_kept(store: Store, first: dict[str, Any], second: dict[str, Any]) -> None:
    one: dict[str, Any] = {"config": made.workers(0)} | first
    other: dict[str, Any] = {"rate": 190.0, "config": made.workers(4)} | second
    before, after = made.run(**one), made.later(**other)
    assert verified(store, before, after).realised is None


def test_a_finding_that_goes_within_a_live_run_is_not_credited(store: Store) -> None:
    """GIVEN contention WHEN the neighbours leave and the run speeds up many times THEN nothing is noted."""
    contention = made.finding("compute.contention", 1.0, 1.3, 2.0)
    for second in range(0, 240, 5):
        seen = (contention,) if second < 60 else ()
        run = made.live(made.run(rate=100.0 if second < 60 else 1800.0))
        store.append(made.snapshot(NOW + second, run, findings=seen))
    store.append(made.snapshot(NOW + 300, made.run(rate=1800.0)))
    assert [entry.realised for entry in store.ledger()] == [None]


def test_a_track_record_is_of_one_kind_of_machine(store: Store) -> None:
    other = made.workers(0) | {"cpu_model": "Another CPU"}
    for id, config in (("run-1", made.workers(0)), ("run-2", other)):
        found = (made.finding("a.b", 1.0, 1.5, 2.0, id),)
        store.append(made.snapshot(NOW, made.run(id, config=config), findings=found))
    store.realised(Realisation("run-2", "a.b", "", 1.4, 1.3, 1.5, "run-3", "x 1 → 2"))
    kinds = {one.host_kind: one.realised for one in store.track_records()}
    assert kinds == {"2 × Some CPU, no GPU": 0, "2 × Another CPU, no GPU": 1}


def test_a_ledger_of_an_older_version_begins_anew(tmp_path: Path) -> None:
    """GIVEN gains without a recorded reason WHEN the file is opened THEN they are dropped."""
    path = tmp_path / "old.db"
    database = sqlite3.connect(path)
    database.executescript(f"{schema.MIGRATIONS[0]} {schema.MIGRATIONS[1]} PRAGMA user_version = 2;")
    database.execute(
        "INSERT INTO ledger (run, rule, subject, low, likely, high, predicted_us, realised, after_run, way)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ("run-1", "compute.contention", "", 1.0, 1.3, 2.0, int(NOW * 1e6), 18.0, "run-2", "change"),
    )
    database.commit()
    database.close()
    (entry,) = Store(path).ledger()
    assert (entry.likely, entry.realised, entry.after_run, entry.changed) == (1.3, None, None, None)

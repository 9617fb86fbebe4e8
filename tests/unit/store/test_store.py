"""History: what goes in comes out, old versions migrate, limits hold, and trouble stops nothing."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from monitor.model.clock import Moment
from monitor.runs.reader import RunReader
from monitor.store import retention, schema
from monitor.store.history import History
from monitor.store.schema import StoreError
from monitor.store.store import GONE_SECONDS, MAINTAIN_EVERY_SECONDS, Store
from tests.unit.runs.rings import Script
from tests.unit.store import made

NOW = 1_750_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state" / "history.db")


def read_into(store: Store, script: Script) -> RunReader:
    reader = RunReader([script.path.parent], sink=store)
    reader.poll(script.now())
    return reader


def test_steps_come_back_exactly(tmp_path: Path, store: Store) -> None:
    script = Script(tmp_path, phases=["mix"])
    for at in range(1, 301):
        script.step(at, {0: at / 2, 12: 0.25}, samples=at, tokens=at * 2, flags=at % 2)
    reader = read_into(store, script)
    script.step(5_000_000.0, {0: 4_000_000.0})
    reader.poll(script.now())
    steps = store.steps("run-1")
    assert steps.step == list(range(1, 302))
    assert steps.seconds[:3] == [0.001, 0.002, 0.003] and steps.seconds[-1] == 5000.0
    assert steps.samples[:3] == [1, 2, 3] and steps.tokens[1] == 4 and steps.flags[:2] == [1, 0]
    assert steps.phases["data"][9] == 0.005 and steps.phases["mix"][0] == 0.00025
    assert len(steps.phases["mix"]) == 301 and steps.phases["mix"][-1] == 0.0
    assert steps.begin[1] - steps.begin[0] == pytest.approx(0.001, abs=1e-6)
    part = store.steps("run-1", after=290, limit=5)
    assert part.step == [291, 292, 293, 294, 295] and len(part.phases["data"]) == 5
    assert store.steps("nobody").step == []


def test_readings_and_their_history(store: Store) -> None:
    for at in range(100):
        store.append(made.snapshot(NOW + at, use=at / 100))
    page = store.history(NOW, NOW + 100, points=10)
    use = next(s for s in page.series if s.subject == "gpu:GPU-1" and s.field == "utilization_ratio")
    assert len(use.mean) == 10 and page.seconds == pytest.approx(10.0)
    assert use.low[0] == 0.0 and use.high[0] == pytest.approx(0.09) and use.mean[0] == pytest.approx(0.045)
    assert not any(series.subject == "gpu:GPU-2" for series in page.series), "a lost GPU has no readings"
    assert store.history(NOW, NOW + 100, subject="host").series[0].subject == "host"


def test_readings_become_minutes(store: Store) -> None:
    for at in range(120):
        store.append(made.snapshot(NOW + at, use=at / 120))
    before = store.history(NOW - 60, NOW + 180, points=4)
    store.maintain(NOW + retention.READINGS_KEEP_US / 1e6 + 200)
    database = sqlite3.connect(store.path)
    assert database.execute("SELECT count(*) FROM readings").fetchone() == (0,)
    assert database.execute("SELECT sum(samples) FROM rollups").fetchone()[0] == 120 * 2
    after = store.history(NOW - 60, NOW + 180, points=4)
    assert [min(s.low) for s in after.series] == [min(s.low) for s in before.series]
    assert [max(s.high) for s in after.series] == [max(s.high) for s in before.series]


def test_runs_with_findings(store: Store) -> None:
    finding = made.finding("input.no_workers", 1.5, 2.0, 2.5)
    store.append(made.snapshot(NOW, made.live(made.run()), made.run("run-2"), findings=(finding,)))
    assert [one.run.id for one in store.runs(state="running")] == ["run-1"]
    found = store.run("run-1")
    assert found is not None and found.findings == (finding,)
    assert len(found.run.timeline) == 40
    assert store.run("nobody") is None
    (entry,) = store.ledger()
    assert (entry.run, entry.rule, entry.likely, entry.realised) == ("run-1", "input.no_workers", 2.0, None)


def test_a_run_nobody_saw_end_was_killed(store: Store) -> None:
    store.append(made.snapshot(NOW, made.live(made.run())))
    store.maintain(NOW + GONE_SECONDS + 10)
    found = store.run("run-1")
    assert found is not None and found.run.state == "killed" and found.run.ended == pytest.approx(NOW)


def test_migration_from_the_first_version(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    database = sqlite3.connect(path)
    database.executescript(f"{schema.MIGRATIONS[0]} PRAGMA user_version = 1;")
    database.execute("INSERT INTO series VALUES (1, 'host', 'cpu')")
    database.execute("INSERT INTO rollups VALUES (1, ?, 1, 2, 3, 60)", (int(NOW * 1e6),))
    database.commit()
    database.close()
    with pytest.raises(StoreError, match="version 1"):
        History(path).runs()
    store = Store(path)
    assert store.error is None
    assert store.history(NOW - 60, NOW + 60, points=1).series[0].mean == (2.0,)
    assert store.ledger() == []


def test_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    store = Store(path)
    assert store.error is not None and "version 99" in store.error
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (99,)


def test_retention_by_age(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db", max_age=86400.0)
    script = Script(tmp_path)
    script.steps([1.0] * 50)
    read_into(store, script)
    store.append(made.snapshot(NOW, made.run()))
    store.maintain(script.now().wall + 86400 * 0.3)
    assert store.steps("run-1").step == [] and store.run("run-1") is not None
    store.maintain(NOW + 86400 * 30)
    assert store.runs() == []


def test_retention_by_size(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db", max_bytes=400_000, max_age=1e9)
    script = Script(tmp_path)
    reader = RunReader([tmp_path], sink=store)
    for round in range(300):
        for at in range(200):
            wobble = (round * 7919 + at * 104729) % 1000 / 10
            script.step(100 + wobble, {0: wobble, 2: 50 - wobble / 3, 3: wobble / 7})
        reader.poll(script.now())
    newest = store.steps("run-1", after=59_900).step
    assert made.file_bytes(store.path) > 600_000
    for _ in range(100):
        if not store.maintain(script.now().wall):
            break
    assert made.file_bytes(store.path) < 600_000
    assert store.steps("run-1", after=59_900).step == newest, "the newest steps stay"
    assert store.steps("run-1", limit=1).step[0] > 1, "the oldest went"


def test_a_corrupt_database_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    path.write_bytes(b"this is no database at all, " * 400)
    store = Store(path)
    store.append(made.snapshot(NOW, made.run()))
    assert store.error is None and len(store.runs()) == 1
    assert [p for p in tmp_path.iterdir() if "broken" in p.name]


def test_a_place_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "h.db")
    script = Script(tmp_path)
    script.steps([1.0] * 10)
    reader = read_into(store, script)
    assert reader.runs(script.now(), (), ())[0].steps == 10
    assert store.error is not None and "cannot write history" in store.error
    with pytest.raises(StoreError):
        store.append(made.snapshot(NOW))
    store.close()


def test_a_full_disk_is_waited_out(tmp_path: Path, store: Store) -> None:
    """GIVEN a database that cannot grow WHEN there is room again THEN no step is missing."""
    assert store._database is not None
    store._database.execute("PRAGMA max_page_count = 1")
    script = Script(tmp_path)
    reader = RunReader([tmp_path], sink=store)
    for at in range(40):
        for step in range(100):
            script.step(1 + (at * 7919 + step * 104729) % 1000, {0: (step * 31) % 7})
        reader.poll(script.now())
    assert store.error is not None and "full" in store.error and len(store.steps("run-1").step) < 4000
    store._database.execute("PRAGMA max_page_count = 1000000")
    script.step(1.0)
    reader.poll(script.now())
    assert store.error is None and store.steps("run-1").step == list(range(1, 4002))


def test_reading_from_another_thread_and_without_a_file(tmp_path: Path, store: Store) -> None:
    assert History(tmp_path / "nothing.db").runs() == []
    assert not (tmp_path / "nothing.db").exists()
    store.append(made.snapshot(NOW, made.run()))
    found: list[int] = []
    thread = threading.Thread(
        target=lambda: found.append(len(store.runs()) + len(History(store.path).runs()))
    )
    thread.start()
    thread.join(10)
    assert found == [2]


def test_maintenance_runs_by_itself(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    monkeypatch.setattr(store, "maintain", lambda now, expire: calls.append(now))
    for at in range(int(2.5 * MAINTAIN_EVERY_SECONDS)):
        store.append(made.snapshot(NOW + at))
    assert len(calls) == 3


def test_a_restarted_reader_knows_what_the_ring_has_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a ring that has wrapped WHEN the daemon is restarted THEN the figures of the whole run remain."""
    monkeypatch.setenv("GPUMON_RING_BYTES", "0")
    script = Script(tmp_path)
    store = Store(tmp_path / "h.db")
    reader = RunReader([tmp_path], sink=store)
    for _ in range(12):
        for step in range(1000):
            validate = 40.0 if step % 200 == 0 else 0.0
            script.step(5.0 + step % 3 + validate, {0: 2.0, 6: validate}, samples=4, overhead=20_000, gc=1000)
        reader.poll(script.now())
    before = reader.runs(script.now(), (), ())[0]
    again = RunReader([tmp_path], sink=Store(tmp_path / "h.db"))
    again.poll(script.now())
    after = again.runs(script.now(), (), ())[0]
    assert (after.steps, after.lost) == (before.steps, before.lost) == (12_000, 0)
    assert after.ranks[0].whole.count == before.ranks[0].whole.count == 12_000
    assert after.ranks[0].whole.mean == pytest.approx(before.ranks[0].whole.mean, rel=1e-3)
    assert [(s.kind, s.count) for s in after.stalls] == [(s.kind, s.count) for s in before.stalls]
    assert len(after.timeline) == len(before.timeline)
    assert sum(window.steps for window in after.timeline) == 12_000


def test_a_restarted_reader_neither_loses_nor_doubles(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([2.0] * 100, samples=3)
    first = Store(tmp_path / "h.db")
    read_into(first, script)
    script.steps([2.0] * 70, samples=3)
    again = Store(tmp_path / "h.db")
    reader = read_into(again, script)
    rank = reader.runs(Moment.now(), (), ())[0].ranks[0]
    assert (rank.steps, rank.lost, rank.samples, sum(rank.histogram)) == (170, 0, 510, 170)
    assert rank.whole.count == 170, "figures are made from what the ring still has"
    assert again.steps("run-1").step == list(range(1, 171))

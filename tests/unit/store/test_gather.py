"""Readings are written together; nothing of them is lost, and runs do not wait."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from monitor.model.finding import Finding
from monitor.store.history import History
from monitor.store.store import Store
from tests.scene import NOW, snapshot


def kept(path: Path) -> int:
    """How many moments of the host are in the file."""
    page = History(path).history(NOW - 100, NOW + 100, 200)
    return max((len(series.time) for series in page.series if series.subject == "host"), default=0)


def test_readings_without_a_run_are_gathered(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = Store(path, gather_seconds=5.0)
    idle = replace(snapshot(), runs=(), findings=())
    for second in range(8):
        store.append(replace(idle, time=NOW + second, monotonic=100.0 + second))
    assert kept(path) == 6, "the first at once, the next five after five seconds"
    store.close()
    assert kept(path) == 8, "the rest when it is closed"


def test_a_run_is_written_at_once_with_what_was_gathered(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = Store(path, gather_seconds=5.0)
    idle = replace(snapshot(), runs=(), findings=())
    for second in range(3):
        store.append(replace(idle, time=NOW + second, monotonic=100.0 + second))
    store.append(replace(snapshot(), time=NOW + 3, monotonic=103.0))
    assert kept(path) == 4
    store.close()


def test_readings_beside_a_run_are_gathered_too(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = Store(path, gather_seconds=5.0)
    for second in range(8):
        store.append(replace(snapshot(), time=NOW + second, monotonic=100.0 + second))
    assert kept(path) == 6, "the first with the run, the next five after five seconds"
    store.close()


def test_a_run_that_is_over_is_not_written_every_second(tmp_path: Path) -> None:
    """GIVEN a run that is over and whose findings only grow older THEN its row is left alone for a while, and
    written again when a finding promises something else."""
    store = Store(tmp_path / "history.db", gather_seconds=60.0)
    over = replace(snapshot().runs[0], state="ended", live=False, ended=NOW)
    (found, *_) = [one for one in snapshot().findings if one.run == over.id and one.speedup is not None]
    old = replace(snapshot(), runs=(over,), findings=(found,))

    def written(second: float, finding: Finding) -> int:
        assert store._database is not None
        before = store._database.total_changes
        aged = replace(finding, age_seconds=second)
        store.append(replace(old, findings=(aged,), time=NOW + second, monotonic=100.0 + second))
        return store._database.total_changes - before

    assert written(0.0, found) > 0
    assert [written(second, found) for second in (1.0, 2.0, 3.0)] == [0, 0, 0]
    assert found.speedup is not None
    assert written(4.0, replace(found, speedup=replace(found.speedup, likely=1.01))) > 0
    store.close()

"""While nothing trains readings are written together; nothing of them is lost, and runs do not wait."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

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

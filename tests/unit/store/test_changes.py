"""A finding that goes within a live run: its realised gain is noted only when the pace surely changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from monitor.snapshot import Run
from monitor.store.changes import WAIT_SECONDS
from monitor.store.store import Store
from tests.unit.store import made

START = 1000.0
THROTTLED = 200


def live_run(now: float, after: float) -> Run:
    """100 samples/s for 200 s, then `after`; windows of 10 s up to `now`."""
    windows = []
    for at in range(int(now - START) // 10):
        pace = (100.0 if at * 10 < THROTTLED else after) * (1 + 0.01 * (at % 3))
        old = made.run().timeline[0]
        windows.append(
            msgspec.structs.replace(
                old, start=START + 10 * at, seconds=10.0, steps_seconds=10.0, samples_per_second=pace
            )
        )
    return made.live(made.run(timeline=tuple(windows)))


@pytest.mark.parametrize(("after", "expected"), [(150.0, 1.5), (100.0, None)])
def test_the_end_of_throttling(tmp_path: Path, after: float, expected: float | None) -> None:
    store = Store(tmp_path / "h.db")
    finding = msgspec.structs.replace(made.finding("device.thermal_throttle", 1.2, 1.4, 1.6), since=START)
    for second in range(0, THROTTLED + 2 * int(WAIT_SECONDS), 5):
        now = START + second
        there = (finding,) if second < THROTTLED else ()
        store.append(made.snapshot(now, live_run(now, after), findings=there))
    (entry,) = store.ledger()
    if expected is None:
        assert entry.realised is None
    else:
        assert entry.realised == pytest.approx(expected, rel=0.03) and entry.way == "change"

"""Somebody sets the machine's clock while runs are read: nothing expires, nothing is lost or doubted."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.store.store import Store
from tests.conftest import wait_for
from tests.faults.people import person
from tests.faults.shims import other_clock
from tests.faults.ticker import ticker


@pytest.mark.parametrize("days", ["+40d", "-40d"])
def test_a_clock_set_for_a_minute_costs_nothing(tmp_path: Path, days: str) -> None:
    """GIVEN a live run and a finished one WHEN the wall clock jumps by 40 days and back THEN both stay
    visible, no step counts as being in the future, no file is removed, and the jump is noticed."""
    shift = tmp_path / "shift"
    shift.write_text("+0d")
    folder = tmp_path / "rings"
    folder.mkdir()
    env = other_clock(shift)
    with person(folder) as over, person(folder) as own, ticker(folder, env=env) as reader:
        over.train("over", steps=5)
        own.train("live", steps=5)
        wait_for(lambda: reader.tick().steps("live") == 5)
        over.end()
        before = wait_for(lambda: (seen := reader.tick()).state("over") == "ended" and seen)
        for text in (days, "+0d"):
            shift.write_text(text)
            own.step(5)
            seen = reader.tick()
            assert abs(abs(seen.jump) - 40 * 86400) < 3600
            assert seen.jump * (1 if text == days else -1) * (1 if days[0] == "+" else -1) > 0
            assert seen.state("over") == "ended" and seen.state("live") == "running"
            assert reader.tick().jump == 0.0
        after = reader.tick()
        assert after.steps("live") == 15 and after.dropped == {} and after.wall > before.wall
    assert (folder / "over.0.ring").exists()
    store = Store(folder / "history.db")
    assert list(store.steps("live").step) == list(range(1, 16))
    store.close()

"""Somebody sets the machine's clock while history is kept: nothing expires by a clock that was just set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE, wait_for
from tests.faults.people import ROOT
from tests.faults.shims import other_clock

KEEPER = """
import json, sys, time
from pathlib import Path
from monitor.store.store import Store
from tests.unit.store import made
from msgspec.structs import replace

store = Store(Path(sys.argv[1]))
store._next_maintenance = 0.0
for line in sys.stdin:
    what = line.strip()
    now = time.time()
    if what == "fill":
        for day in range(29):
            then = now - day * 86400
            store.append(made.snapshot(then, made.run(f"day-{day}", started=then - 10, ended=then)))
    store._next_maintenance = 0.0  # every tick, where a daemon takes care once a minute
    store.append(replace(made.snapshot(now), monotonic=time.monotonic()))
    print(json.dumps({"wall": now, "runs": len(store.runs())}), flush=True)
"""


class Keeper:
    def __init__(self, path: Path, shift: Path) -> None:
        env = other_clock(shift)
        self.process = subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(path)], cwd=ROOT, env={**os.environ, **env},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tick(self, what: str = "tick") -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("days", ["+40d", "-40d"])
def test_a_clock_set_for_a_minute_expires_nothing(tmp_path: Path, days: str) -> None:
    """GIVEN a history of 29 days WHEN the wall clock jumps by 40 days, daemons do their housekeeping, and it
    jumps back THEN every run is still there; also if the daemon was started while the clock was wrong."""
    shift = tmp_path / "shift"
    shift.write_text("+0d")
    with Keeper(tmp_path / "history.db", shift) as keeper:
        begin = wait_for(lambda: keeper.tick("fill"))
        assert begin["runs"] == 29
        shift.write_text(days)
        seen = [keeper.tick() for _ in range(5)]
        assert abs(abs(seen[-1]["wall"] - begin["wall"]) - 40 * 86400) < 3600
        with Keeper(tmp_path / "history.db", shift) as second:
            seen += [second.tick() for _ in range(3)]
        shift.write_text("+0d")
        seen += [keeper.tick() for _ in range(3)]
    assert [one["runs"] for one in seen] == [29] * len(seen)

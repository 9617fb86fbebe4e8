"""kill -9 under load, of trainers and of the reader: what was written is read or counted as lost, no record
is doubted, and the history has each step once. `make faults N=200` kills more of them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from monitor.store.store import Store
from sdk import ring
from tests.conftest import wait_for
from tests.faults.people import ROOT
from tests.faults.ticker import Seen, ticker

KILLS = int(os.environ.get("GPUMON_FAULTS", "20"))
AT_ONCE = 4
TRAINER = """
import sys, time
from sdk import TrainingMonitor
with TrainingMonitor("killed", batch_size=2) as monitor:
    while True:
        with monitor.phase("data"):
            pass
        monitor.step(loss=1.0)
        time.sleep(float(sys.argv[1]))
"""


def trainer(folder: Path, run: str, pause: float) -> subprocess.Popen[bytes]:
    env = {**os.environ, "GPUMON_DIR": str(folder), "GPUMON_RUN_ID": run}
    return subprocess.Popen([sys.executable, "-c", TRAINER, str(pause)], cwd=ROOT, env=env)


def written(folder: Path, run: str) -> tuple[int, int]:
    """How many steps a killed trainer had committed, and how many it had done, according to its ring."""
    fd = os.open(folder / f"{run}.0.ring", os.O_RDONLY)
    try:
        header = ring.read_header(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)
    return header.head, max(header.head, header.closed)


@pytest.mark.slow
@pytest.mark.timeout(1200 + 60 * KILLS)
def test_kills_lose_nothing_uncounted_and_double_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """GIVEN trainers under load WHEN they, and occasionally the reader, are killed THEN every run is seen as
    killed with written = read + lost, and no step is doubted or stored twice."""
    chance = random.Random(KILLS)
    done: dict[str, tuple[int, int]] = {}
    for first in range(0, KILLS, AT_ONCE):
        names = [f"k{at}" for at in range(first, min(first + AT_ONCE, KILLS))]
        done |= kill_some(tmp_path, names, chance)
    figures = check_history(tmp_path, done)
    for name, value in {"tried": KILLS, "doubled": 0, **figures}.items():
        record_property(name, value)


def kill_some(folder: Path, names: list[str], chance: random.Random) -> dict[str, tuple[int, int]]:
    """Start them, wait until they are read, kill each at its own moment, every other time the reader first;
    returns what each had written."""
    running = {name: trainer(folder, name, chance.choice((0.0, 0.0002, 0.005))) for name in names}
    try:
        with ticker(folder) as reader:
            wait_for(lambda: has_begun(reader.tick(), names))
            if chance.random() < 0.5:
                reader.process.kill()
            for child in running.values():
                time.sleep(chance.uniform(0.0, 0.05))
                os.kill(child.pid, signal.SIGKILL)
    finally:
        for child in running.values():
            child.kill()
            child.wait(20)
    with ticker(folder) as again:
        seen = wait_for(lambda: all_killed(again.tick(), names))
    assert not {"rings.records", "rings.unexpected"} & set(seen.dropped)
    found = {name: written(folder, name) for name in names}
    assert {name: seen.steps(name) for name in names} == {name: done for name, (_, done) in found.items()}
    return found


def has_begun(seen: Seen, names: list[str]) -> bool:
    return all(seen.steps(name) > 5 for name in names)


def all_killed(seen: Seen, names: list[str]) -> Seen | None:
    return seen if all(seen.state(name) == "killed" for name in names) else None


def check_history(folder: Path, runs: dict[str, tuple[int, int]]) -> Counter[str]:
    """Steps of all runs: written, read, and counted as lost."""
    figures: Counter[str] = Counter()
    store = Store(folder / "history.db")
    try:
        for run, (committed, done) in runs.items():
            numbers = list(store.steps(run, limit=10**7).step)
            ((raw,),) = store._rows("SELECT counters FROM rings WHERE run = ?", (run,))
            counters = json.loads(raw)
            assert len(set(numbers)) == len(numbers) == counters["read"], f"{run}: a step is stored twice"
            assert 0 < max(numbers) <= committed and counters["bad"] == 0, run
            assert counters["read"] + counters["lost"] == done, run
            figures.update(written=done, read=counters["read"], lost=counters["lost"])
    finally:
        store.close()
    return figures

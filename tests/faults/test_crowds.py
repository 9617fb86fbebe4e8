"""Many runs at once, and rings that are anything but rings."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.runs.reader import RunReader
from monitor.store.store import Store
from tests.conftest import wait_for
from tests.faults import fuzz, fuzz_daemon
from tests.faults.people import ROOT, look

MUTANTS = 1500
"""What `make test` tries; `make fuzz` tries 100,000, and 2,000 of them through a daemon."""
FORKS = """
import os, sys, time
from array import array
from sdk import ring
from sdk.writer import RingWriter

folder, count, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def train(run):
    meta = {"kind": "trainer", "run": run, "rank": 0, "name": run}
    writer = RingWriter(f"{folder}/{run}.0.ring", meta, slots=256)
    record = array("Q", ring.EMPTY_RECORD)
    for _ in range(steps):
        record[ring.W_BEGIN] = time.monotonic_ns()
        time.sleep(0.002)
        record[ring.W_END] = time.monotonic_ns()
        writer.commit(record)
    writer.close()

children = []
for at in range(count):
    pid = os.fork()
    if pid == 0:
        train(f"run-{at}")
        os._exit(0)
    children.append(pid)
failed = [pid for pid in children if os.waitpid(pid, 0)[1]]
sys.exit(bool(failed))
"""


def test_two_hundred_runs_at_once(tmp_path: Path) -> None:
    """GIVEN two hundred processes that train at the same time THEN each is seen, with all its steps, once."""
    runs, steps = 200, 100
    command = [sys.executable, "-c", FORKS, str(tmp_path), str(runs), str(steps)]
    crowd = subprocess.Popen(command, cwd=ROOT)
    store = Store(tmp_path / "history.db")
    reader = RunReader([tmp_path], sink=store, keep_ended=float("inf"))
    seen: dict[str, tuple[int, int]] = {}

    def all_over() -> bool:
        seen.update((key, (run.steps, run.lost)) for key, run in look(reader).items())
        return len(seen) == runs and all(sum(one) >= steps for one in seen.values())

    try:
        wait_for(all_over, every=0.2)
        assert crowd.wait(60) == 0
    finally:
        crowd.kill()
        crowd.wait(20)
    assert set(seen.values()) == {(steps, 0)}
    assert not set(reader.dropped) - {"rings.ended"}
    assert all(list(store.steps(run).step) == list(range(1, steps + 1)) for run in seen)
    wait_for(lambda: look(reader) is not None and reader.followers == [])
    assert ring_descriptors(tmp_path) == 0, "runs that are over hold no file open"
    store.close()


def ring_descriptors(folder: Path) -> int:
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    targets = [os.readlink(link) for link in links if os.path.islink(link)]
    return sum(target.startswith(f"{folder}/run-") for target in targets)


def test_mutated_rings_hide_nobody() -> None:
    logging.disable(logging.WARNING)
    try:
        for seed in range(MUTANTS // fuzz.BATCH):
            assert fuzz.batch(10_000 + seed) == [], f"seed {10_000 + seed}"
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.slow
def test_mutated_rings_hide_nobody_from_a_daemon(tmp_path: Path) -> None:
    fuzz_daemon.fuzz(tmp_path, rings=100, seed=77)

"""Failing files: no descriptors left, a full or broken disk, a stopped reader or trainer.

What was written is read or counted as lost, nothing is doubted, and nothing is read twice.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitor.store.store import Store
from tests.conftest import wait_for
from tests.faults.people import person
from tests.faults.shims import built
from tests.faults.ticker import Ticker, ticker
from tests.integration.runs.processes import WRITER, program


@contextmanager
def failing(folder: Path) -> Iterator[tuple[Ticker, Path]]:
    """A reader, and the file that says what should fail."""
    plan = folder.parent / "plan"
    with ticker(folder, env={"LD_PRELOAD": built("shim.c"), "FAULTS": str(plan)}) as reader:
        yield reader, plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "rings"
    place.mkdir()
    return place


def stored(folder: Path, run: str) -> list[int]:
    store = Store(folder / "history.db")
    try:
        return list(store.steps(run).step)
    finally:
        store.close()


def test_without_descriptors_nothing_is_forgotten_or_read_twice(folder: Path) -> None:
    """GIVEN fewer descriptors than rings WHEN listing and opening fail again and again, and there is room
    later THEN every step of every run is stored exactly once."""
    runs = [f"run-{at}" for at in range(60)]
    with person(folder) as own, ticker(folder, files=48) as reader:
        own.train(*runs[:30], steps=5)
        wait_for(lambda: len(reader.tick().runs) > 5)
        own.train(*runs[30:], steps=5)
        for _ in range(20):
            own.step(1)
            seen = reader.tick()
        assert len(seen.runs) < 60 and seen.dropped["rings.rings"] + seen.dropped.get("rings.listing", 0) > 0
        assert reader.raise_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        wait_for(
            lambda: len((seen := reader.tick()).runs) == 60 and all(seen.steps(run) == 25 for run in runs)
        )
        assert all(lost == 0 for _, _, lost in reader.tick().runs.values())
        assert "rings.records" not in reader.tick().dropped
    assert all(stored(folder, run) == list(range(1, 26)) for run in runs)


def test_a_read_that_fails_for_a_while_costs_nothing(folder: Path) -> None:
    with person(folder) as own, failing(folder) as (reader, plan):
        own.train("run", steps=5)
        wait_for(lambda: reader.tick().steps("run") == 5)
        plan.write_text(f"{errno.EIO} 0 .ring")
        for _ in range(5):
            own.step(3)
            seen = reader.tick()
            assert seen.state("run") == "running" and seen.steps("run") == 5
        assert seen.dropped == {"rings.unreadable": 5}
        plan.write_text("0 0 -")
        assert wait_for(lambda: (seen := reader.tick()).steps("run") == 20 and seen).runs["run"][2] == 0
    assert stored(folder, "run") == list(range(1, 21))


def test_a_read_that_always_fails_costs_that_ring_alone(folder: Path) -> None:
    with person(folder) as own, failing(folder) as (reader, plan):
        own.train("bad", "good", steps=5)
        wait_for(lambda: reader.tick().steps("good") == 5)
        plan.write_text(f"{errno.EIO} 0 bad.0.ring")
        for _ in range(12):
            own.step(1)
            seen = reader.tick()
        assert seen.state("bad") == "killed" and seen.steps("good") == 17
        assert seen.dropped == {"rings.broken": 1, "rings.unreadable": 9}


def test_a_full_disk_is_waited_out(folder: Path) -> None:
    """GIVEN a history that cannot be written WHEN there is room again THEN everything is in it, once."""
    with person(folder) as own, failing(folder) as (reader, plan):
        own.train("run", steps=5)
        wait_for(lambda: reader.tick().steps("run") == 5)
        plan.write_text(f"0 {errno.ENOSPC} history.db")
        for _ in range(5):
            own.step(3)
            seen = reader.tick()
        assert seen.history is not None and seen.steps("run") == 20 and seen.state("run") == "running"
        plan.write_text("0 0 -")
        own.step(1)
        wait_for(lambda: reader.tick().history is None, every=0.5)
    assert stored(folder, "run") == list(range(1, 22))


@pytest.mark.slow
def test_a_reader_that_was_stopped_doubts_nothing(folder: Path) -> None:
    """GIVEN a reader stopped for seconds in the middle of its tick WHEN it continues THEN no step written in
    the meantime is mistaken for one in the future."""
    with program(WRITER, folder / "fast.0.ring", 10**8, 0, 1 << 22) as writer, ticker(folder) as reader:
        wait_for(lambda: reader.tick().steps("fast") > 1000)
        for _ in range(2):
            reader.start()
            time.sleep(0.01)
            os.kill(reader.process.pid, signal.SIGSTOP)
            time.sleep(2.5)  # longer than clocks may differ
            os.kill(reader.process.pid, signal.SIGCONT)
            seen = reader.answer()
        assert "rings.records" not in seen.dropped and seen.state("fast") == "running"
        writer.kill()
        writer.wait(20)
        wait_for(lambda: reader.tick().state("fast") == "killed")


def test_a_stopped_trainer_is_alive(folder: Path) -> None:
    """GIVEN a trainer that was stopped WHEN it continues THEN its run continues, with every step."""
    with program(WRITER, folder / "held.0.ring", 3000, 0.0005, 1 << 22) as writer, ticker(folder) as reader:
        wait_for(lambda: reader.tick().steps("held") > 10)
        os.kill(writer.pid, signal.SIGSTOP)
        held = reader.tick()
        assert held.state("held") in ("running", "stalled")
        os.kill(writer.pid, signal.SIGCONT)
        seen = wait_for(lambda: (seen := reader.tick()).steps("held") == 3000 and seen)
        assert seen.runs["held"][1:] == [3000, 0] and seen.dropped == {}
    assert stored(folder, "held") == list(range(1, 3001))

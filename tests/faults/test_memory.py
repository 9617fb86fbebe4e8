"""A daemon without memory: what it cannot read now it reads later, once; if it dies, the next one does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from monitor.store.store import Store
from tests.conftest import require_program, wait_for
from tests.faults.people import person
from tests.integration.daemon.process import Daemon

UNLIMITED = "unlimited"
ROOM = 1 << 20
"""Bytes it may still allocate: a batch of steps needs more."""


def limit(daemon: Daemon, most: int | str) -> None:
    assert daemon.process is not None
    command = [require_program("prlimit"), f"--pid={daemon.process.pid}", f"--as={most}:{UNLIMITED}"]
    subprocess.run(command, check=daemon.process.poll() is None, capture_output=True)


def taken(daemon: Daemon) -> int:
    assert daemon.process is not None
    pages = int(Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def suffers(daemon: Daemon) -> bool:
    assert daemon.process is not None
    return daemon.process.poll() is not None or "memory" in daemon.log.lower()


def test_without_memory_nothing_is_lost_uncounted_or_read_twice(tmp_path: Path) -> None:
    """GIVEN a daemon that gets no more memory WHEN far more is written than it has room for THEN later, or
    after a restart, every step was read or counted as lost, and is stored once."""
    (tmp_path / "rings").mkdir()
    written = 5
    with person(tmp_path / "rings") as trainer:
        trainer.train("run", steps=written, slots=1 << 16)
        with Daemon(tmp_path, "--source", "none") as daemon:
            wait_for(lambda: steps(daemon) == written)
            limit(daemon, taken(daemon) + ROOM)
            while not suffers(daemon) and written < 1_000_000:
                trainer.step(20_000)
                written += 20_000
            wait_for(lambda: suffers(daemon))
            limit(daemon, UNLIMITED)
            if daemon.process is not None and daemon.process.poll() is None:
                wait_for(lambda: steps(daemon) == written)
        with Daemon(tmp_path, "--source", "none") as daemon:
            wait_for(lambda: steps(daemon) == written)
            lost = daemon.metric("gpumon_rank_lost_records_total", 'run="run"') or 0
    store = Store(tmp_path / "history.db")
    stored = list(store.steps("run", limit=2_000_000).step)
    store.close()
    assert len(set(stored)) == len(stored) == written - lost


def steps(daemon: Daemon) -> float | None:
    try:
        return daemon.metric("gpumon_rank_steps_total", 'run="run"')
    except OSError:
        return None

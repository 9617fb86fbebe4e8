"""Storms of signals over growing rings: no Ctrl-C is swallowed, no ring ends unmarked, none is broken.

`make test` runs a share of them; GPUMON_STORM=1000 runs all.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sdk import ring
from sdk.writer import is_locked
from tests.conftest import PATIENCE

STORM = int(os.environ.get("GPUMON_STORM", "150"))
KILLS = max(5, STORM // 20)
"""Interrupts in a storm, and kills at random moments."""

TRAINER = """
import signal, sys
from sdk import TrainingMonitor, ring

INTERRUPT = {signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
ring.INITIAL_SLOTS = 64  # so that a ring grows seven times in a moment
rounds, interrupts = int(sys.argv[1]), 0
print("ready", flush=True)
while interrupts < rounds:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
        monitor = TrainingMonitor("storm")
        monitor.start_monitoring()
        try:
            for _ in range(8192):
                monitor.lap("forward")
                monitor.step()
        finally:
            monitor.stop_monitoring()
    except KeyboardInterrupt:
        interrupts += 1
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)  # the next one comes when we are back in the loop
        print(interrupts, flush=True)
"""
"""Reports after each interrupt how many have reached it. The next is sent only then, because the kernel
merges two that are pending."""


def start(folder: Path, rounds: int) -> subprocess.Popen[str]:
    environment = os.environ | {"GPUMON_DIR": str(folder)}
    child = subprocess.Popen(
        [sys.executable, "-c", TRAINER, str(rounds)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert answer(child) == "ready"
    return child


def answer(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    readable, _, _ = select.select([child.stdout], [], [], PATIENCE)
    assert readable, "an interrupt was swallowed"
    return child.stdout.readline().strip()


def rings(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{ring.SUFFIX}"))


def header(path: Path) -> tuple[ring.Header, int]:
    """The header, and how many of the records it announces can be read."""
    fd = os.open(path, os.O_RDONLY)
    try:
        found = ring.read_header(fd, os.fstat(fd).st_size)
        block = ring.read_block(fd, found, 0, 1 << 20)
        assert ring.read_meta(fd) is not None
        return found, block.count + block.lost
    finally:
        os.close(fd)


@pytest.mark.slow
def test_no_interrupt_is_lost_and_every_ring_ends_marked(gpumon_dir: Path) -> None:
    child = start(gpumon_dir, STORM)
    rng = random.Random(1)
    for number in range(1, STORM + 1):
        select.select([], [], [], rng.random() * 0.02)
        child.send_signal(signal.SIGINT)
        assert answer(child) == str(number)
    _, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, errors) == (0, "")
    found = [header(path) for path in rings(gpumon_dir)]
    assert found and all(one.state != ring.S_RUNNING for one, _ in found)
    assert all(one.head == readable for one, readable in found)
    assert any(one.slots > 64 for one, _ in found), "a ring grew"


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_ring_that_can_be_read(gpumon_dir: Path) -> None:
    rng = random.Random(2)
    for _ in range(KILLS):
        child = start(gpumon_dir, 1)
        select.select([], [], [], rng.random() * 0.05)
        child.kill()
        child.communicate(timeout=PATIENCE)
        for path in rings(gpumon_dir):
            assert not is_locked(str(path))
            found, readable = header(path)
            assert found.head == readable
            path.unlink()

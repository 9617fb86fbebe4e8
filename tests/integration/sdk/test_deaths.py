"""What is left when something dies or is missing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sdk import ring
from sdk.writer import is_locked
from tests.conftest import PATIENCE, wait_for
from tests.integration.sdk.scripts import PLAIN, ROOT, environment, finish, start, write
from tests.rings import read_ring, trainer_rings


def test_kill_9_leaves_every_step_and_the_phase_it_died_in(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(tmp_path, PLAIN)
    child = start(script, gpumon_dir, "20000", "19000")
    assert child.stdout is not None and child.stdout.readline().strip() == "stuck"
    path = next(gpumon_dir.glob("*.ring"))
    assert is_locked(str(path))
    child.kill()
    child.communicate(timeout=PATIENCE)
    assert not is_locked(str(path)), "the kernel lets go of a dead writer's lock"
    found = read_ring(path)
    assert found.header.head == found.header.closed == 19000
    assert found.header.state == ring.S_RUNNING
    assert ring.PHASES[found.header.live_phase] == "backward"


def test_an_interrupt_ends_the_run_as_interrupted(gpumon_dir: Path, tmp_path: Path) -> None:
    child = start(write(tmp_path, PLAIN), gpumon_dir, "500", "30")
    assert child.stdout is not None and child.stdout.readline().strip() == "stuck"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert "KeyboardInterrupt" in err
    (found,) = trainer_rings(gpumon_dir)
    assert found.header.state == ring.S_INTERRUPTED
    assert found.header.head == 30


def test_reader_may_come_late_and_go(gpumon_dir: Path, tmp_path: Path) -> None:
    """No daemon, then one that reads while the loop runs, then none again: nothing is lost."""
    script = write(tmp_path, PLAIN.replace("m.step()", "m.step(); time.sleep(0.002)"))
    child = start(script, gpumon_dir, "400", "-1")
    path = wait_for(lambda: next(gpumon_dir.glob("*.ring"), None))
    seen = wait_for(lambda: read_ring(path).header.head > 50 and read_ring(path))
    assert seen.lost == 0
    child.communicate(timeout=PATIENCE)
    found = read_ring(path)
    assert (found.header.head, found.lost) == (400, 0)


def test_unwritable_directory(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    where = locked / "rings" if os.getuid() else Path("/proc/nowhere")
    result = finish(write(tmp_path, PLAIN + "print(m.get_summary()['steps'])"), where, "20", "-1")
    assert result.returncode == 0
    assert result.stdout.strip() == "20"
    assert result.stderr.count("not recorded") == 1


def test_full_tmpfs(tmp_path: Path) -> None:
    """Too small from the start: no ring, no SIGBUS. Just large enough: it cannot grow, so it wraps."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mounted)]
    if os.getuid() or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root and the right to mount")
    script = write(tmp_path, PLAIN + "print(m.get_summary()['steps'])")
    try:
        result = finish(script, mounted, str(ring.INITIAL_SLOTS + 1000), "-1")
        assert (result.returncode, result.stdout.strip()) == (0, str(ring.INITIAL_SLOTS + 1000)), (
            result.stderr
        )
        (found,) = trainer_rings(mounted)
        assert found.lost == 1000, "no room to grow: the oldest are gone, and counted"
        (mounted / "filler").write_bytes(bytes(900_000))
        result = finish(script, mounted, "50", "-1")
        assert (result.returncode, result.stdout.strip()) == (0, "50")
        assert "not recorded" in result.stderr
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_fork_makes_no_second_writer(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        "import os\nfrom sdk import TrainingMonitor\n"
        "with TrainingMonitor('f') as m:\n"
        "    for number in m.loader(range(100)):\n"
        "        if number == 50 and os.fork() == 0:\n"
        "            for _ in range(1000): m.lap('forward'); m.step()\n"
        "            os._exit(0)\n"
        "        m.step()\n"
        "os.wait()\n",
    )
    assert finish(script, gpumon_dir).returncode == 0
    (found,) = trainer_rings(gpumon_dir)
    assert found.header.head == 100
    assert not any("forward" in one.phases for one in found.records)


CHILD = """
import multiprocessing, sys
from sdk import TrainingMonitor

def train(fails):
    monitor = TrainingMonitor("child")
    monitor.start_monitoring()
    for _ in range(20):
        monitor.step()
    if fails:
        raise ValueError

if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=train, args=(sys.argv[2] == "fails",))
    child.start()
    child.join()
"""


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(("end", "state"), [("well", ring.S_ENDED), ("fails", ring.S_FAILED)])
def test_a_child_of_multiprocessing_that_ends_was_not_killed(
    gpumon_dir: Path, tmp_path: Path, context: str, end: str, state: int
) -> None:
    """GIVEN a child that trains and does not stop its monitor THEN its ring says how it ended, although a
    forked one leaves by `os._exit`."""
    assert finish(write(tmp_path, CHILD), gpumon_dir, context, end).returncode == 0
    (found,) = trainer_rings(gpumon_dir)
    assert (found.header.state, found.header.head) == (state, 20)


@pytest.mark.slow
def test_a_million_steps_without_growth(tmp_path: Path) -> None:
    """A million steps need about the memory of 50,000 (the ring is capped): 8 bytes per step would show."""
    script = write(
        tmp_path,
        "import resource\nfrom sdk import TrainingMonitor\n"
        "m = TrainingMonitor('m'); m.start_monitoring()\n"
        "for number in m.loader(range(1_000_000)):\n"
        "    m.lap('forward'); m.step(0.5, accuracy=number)\n"
        "    if number == 50_000: before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "m.stop_monitoring()\n"
        "print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, m.get_summary()['steps'])\n",
    )
    directory = tmp_path / "rings"
    env = {**environment(directory), "GPUMON_RING_BYTES": "4000000"}
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
    )
    before, after, steps = map(int, done.stdout.split())
    assert steps == 1_000_000
    assert after < 1.2 * before
    (found,) = trainer_rings(directory)
    assert len(found.records) + found.lost == 1_000_000
    assert found.path.stat().st_size < 4_000_000

"""Real trainers with real workers, started in every way Python knows, and the cost of reading them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from monitor.clock import Moment
from monitor.host.portable import PortableHost
from monitor.host.reader import HostReader
from monitor.snapshot import Process
from tests.conftest import wait_for

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

TRAINER = """
import multiprocessing, sys, threading, time

def work(busy):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if not busy:
            time.sleep(0.1)

if __name__ == "__main__":
    method, workers, threads, busy = sys.argv[1], *map(int, sys.argv[2:5])
    context = multiprocessing.get_context(method)
    for index in range(workers):
        context.Process(target=work, args=(index < busy,), daemon=True).start()
    for _ in range(threads):
        threading.Thread(target=work, args=(False,), daemon=True).start()
    print("ready", flush=True)
    work(False)
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts trainers; at the end they and their workers are gone, by process group."""
    script = tmp_path / "train.py"
    script.write_text(TRAINER)
    started: list[subprocess.Popen[str]] = []

    def launch(
        method: str = "fork", workers: int = 0, threads: int = 0, busy: int = 0
    ) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), method, str(workers), str(threads), str(busy)]
        environ = {**os.environ, "SLURM_JOB_ID": "4711"}
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environ
        )
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    yield launch
    for child in started:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


@pytest.fixture
def reader() -> Iterator[HostReader]:
    host = HostReader()
    yield host
    host.close()


def read(reader: HostReader, pid: int) -> dict[int, Process]:
    found, left = reader.processes(Moment.now(), {pid: ("run", 0)}, ())
    assert left == 0
    return {process.pid: process for process in found}


def workers_of(found: dict[int, Process]) -> list[Process]:
    return [process for process in found.values() if process.role == "worker"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_are_found_however_they_are_started(start: Start, method: str) -> None:
    trainer = start(method, workers=3)

    def all_there() -> dict[int, Process] | None:
        reader = HostReader()
        found = read(reader, trainer.pid)
        reader.close()
        return found if len(workers_of(found)) == 3 else None

    found = wait_for(all_there)
    assert found is not None
    assert found[trainer.pid].role == "trainer"
    assert {process.rank for process in found.values()} == {0}
    assert all(process.rss_bytes and process.threads == 1 for process in workers_of(found))


def test_what_is_known_about_a_trainer(start: Start, reader: HostReader) -> None:
    trainer = start(threads=5)
    found = read(reader, trainer.pid)[trainer.pid]
    peer = psutil.Process(trainer.pid)
    assert found.threads == 6
    assert found.command == " ".join(peer.cmdline())
    assert found.user == peer.username()
    assert found.parent == os.getpid()
    assert found.slurm_job == "4711"
    assert found.started == pytest.approx(peer.create_time(), abs=1.5)
    assert found.rss_bytes == pytest.approx(peer.memory_info().rss, rel=0.2)
    assert found.cpu_ratio is None


def test_cpu_is_in_cores_and_told_per_process(start: Start, reader: HostReader) -> None:
    trainer = start(workers=2, busy=1)
    before = read(reader, trainer.pid)
    assert all(process.cpu_ratio is None for process in before.values())
    used = {pid: sum(psutil.Process(pid).cpu_times()[:2]) for pid in before}
    begin = time.monotonic()
    time.sleep(1.0)
    after = read(reader, trainer.pid)
    passed = time.monotonic() - begin
    busy, idle = sorted(workers_of(after), key=lambda worker: -(worker.cpu_ratio or 0))
    expected = (sum(psutil.Process(busy.pid).cpu_times()[:2]) - used[busy.pid]) / passed
    assert busy.cpu_ratio == pytest.approx(expected, abs=0.1)
    assert (busy.cpu_ratio or 0) > 0.1
    assert idle.cpu_ratio is not None
    assert idle.cpu_ratio < 0.1


def test_written_bytes(start: Start, reader: HostReader, tmp_path: Path) -> None:
    """Our own process as the trainer: what it writes is known."""
    me = os.getpid()
    if read(reader, me)[me].write_bytes_per_second is None and not os.access(f"/proc/{me}/io", os.R_OK):
        pytest.skip("this kernel has no I/O accounting")
    with open(tmp_path / "data", "wb") as file:
        file.write(b"x" * (8 << 20))
        file.flush()
        os.fsync(file.fileno())
    assert (read(reader, me)[me].write_bytes_per_second or -1) >= 0


def test_killed_workers_vanish_and_the_trainer_stays(start: Start, reader: HostReader) -> None:
    trainer = start(workers=2)
    victim = workers_of(read(reader, trainer.pid))[0].pid
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: victim not in read(reader, trainer.pid))
    assert trainer.pid in read(reader, trainer.pid)
    os.killpg(trainer.pid, signal.SIGKILL)
    wait_for(lambda: not read(reader, trainer.pid))


def test_a_worker_started_later_is_found(start: Start, reader: HostReader) -> None:
    """The test itself is the trainer here and starts a child after the first look."""
    me = os.getpid()
    read(reader, me)
    late = start()
    assert wait_for(lambda: read(reader, me).get(late.pid)) is not None


def test_no_descriptor_is_left_open(start: Start) -> None:
    trainer = start(workers=4)
    before = len(os.listdir("/proc/self/fd"))
    reader = HostReader()
    reader.read(Moment.now())
    assert len(read(reader, trainer.pid)) == 5
    reader.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_sees_less_but_nothing_breaks(start: Start) -> None:
    """Another user's I/O, environment and mounts are closed: absent, and the rest is there."""
    trainer = start(workers=1)
    code = (
        "import os, sys; from monitor.clock import Moment; from monitor.snapshot import encode\n"
        "import monitor.host.linux; from monitor.host.reader import HostReader\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"reader = HostReader(); trainers = {{{trainer.pid}: ('run', 0)}}\n"
        "for _ in range(2):\n"
        "    now = Moment.now(); reader.read(now); found = reader.processes(now, trainers, ())\n"
        "print(encode(found[0]).decode())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert answer.returncode == 0, answer.stderr
    found = msgspec.json.decode(answer.stdout, type=list[Process])
    assert [process.role for process in found] == ["trainer", "worker"]
    assert all(process.read_bytes_per_second is None and process.slurm_job is None for process in found)
    assert all(process.cpu_ratio is not None and process.user == "root" for process in found)


def test_the_machines_figures_agree_with_psutil(reader: HostReader) -> None:
    reader.read(Moment.now())
    time.sleep(0.3)
    host = reader.read(Moment.now())
    assert host.memory is not None
    assert host.memory.total_bytes == psutil.virtual_memory().total
    assert host.memory.available_bytes == pytest.approx(psutil.virtual_memory().available, rel=0.1)
    assert host.boot_time == pytest.approx(psutil.boot_time(), abs=2)
    assert host.cpu is not None
    assert host.cpu.cores == psutil.cpu_count()
    assert len(host.cpu.per_core_ratio) == host.cpu.cores
    assert 0 <= (host.cpu.utilization_ratio or 0) <= 1


def test_the_portable_reader_sees_the_same_processes(start: Start) -> None:
    trainer = start(workers=2)
    portable = PortableHost(max_processes=10)
    portable.read(Moment.now())
    found, left = portable.processes(Moment.now(), {trainer.pid: ("run", 3)}, [os.getpid(), 2**22])
    roles = sorted(process.role for process in found)
    assert (roles, left) == (["gpu", "trainer", "worker", "worker"], 0)
    time.sleep(0.05)
    again = portable.processes(Moment.now(), {trainer.pid: ("run", 3)}, ())[0]
    assert all(process.cpu_ratio is not None for process in again if process.pid in {p.pid for p in found})
    host = portable.read(Moment.now())
    assert host.memory is not None
    assert host.cpu is not None


@pytest.mark.slow
def test_reading_four_trainers_with_eight_workers_each_is_cheap(start: Start, reader: HostReader) -> None:
    """CPU time, not wall time: other programs on the machine do not count. Best of three rounds."""
    trainers = {start(workers=8, threads=8).pid: ("run", rank) for rank in range(4)}
    costs = []
    for _ in range(3):
        begin = time.process_time()
        for _ in range(20):
            now = Moment.now()
            reader.read(now)
            found, _ = reader.processes(now, trainers, ())
        costs.append((time.process_time() - begin) / 20)
    assert len(found) == 36
    assert min(costs) <= 0.003

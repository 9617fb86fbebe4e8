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

from monitor.host.portable import PortableHost
from monitor.host.reader import HostReader
from monitor.model.clock import Moment
from monitor.model.host import Process
from tests.conftest import PATIENCE, wait_for

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

TRAINER = """
import multiprocessing, sys, threading, time

def work(busy):
    until = time.monotonic() + 3600
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
    """Starts trainers; at the end it removes them and their workers, by process group."""
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
        started = [worker for worker in workers_of(found) if worker.rss_bytes and worker.threads == 1]
        return found if len(started) == 3 else None

    found = wait_for(all_there)
    assert found is not None
    assert found[trainer.pid].role == "trainer"
    assert {process.rank for process in found.values()} == {0}


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
    """Each figure lies between two from psutil: one for a longer and one for a shorter time than ours."""
    trainer = start(workers=2, busy=1)
    workers = psutil.Process(trainer.pid).children()
    first = Usage(workers)
    assert all(process.cpu_ratio is None for process in read(reader, trainer.pid).values())
    second = Usage(workers)
    wait_for(lambda: max(Usage(workers).since(second)) > 0.5)
    third = Usage(workers)
    after = {process.pid: process.cpu_ratio for process in workers_of(read(reader, trainer.pid))}
    fourth = Usage(workers)
    told = [after[worker.pid] or 0.0 for worker in workers]
    least = [(used - TICKS) / (fourth.at - first.at) for used in third.since(second)]
    most = [(used + TICKS) / (third.at - second.at) for used in fourth.since(first)]
    assert all(low <= ratio <= high for low, ratio, high in zip(least, told, most, strict=True))
    assert max(told) > 10 * min(told)


TICKS = 0.03
"""CPU time is counted in hundredths of a second, in two places."""


class Usage:
    """CPU seconds of some processes, according to psutil."""

    def __init__(self, processes: list[psutil.Process]) -> None:
        self.at = time.monotonic()
        self.seconds = [sum(process.cpu_times()[:2]) for process in processes]

    def since(self, before: Usage) -> list[float]:
        return [now - then for now, then in zip(self.seconds, before.seconds, strict=True)]


def test_written_bytes(start: Start, reader: HostReader, tmp_path: Path) -> None:
    """Our own process is the trainer: what it writes is known."""
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
    """The test itself is the trainer here and starts a child after the first reading."""
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
    """Another user's I/O, environment and mounts are closed to us: absent, while the rest is there."""
    trainer = start(workers=1)
    code = (
        "import os, sys; from monitor.model.clock import Moment; from monitor.model.snapshot import encode\n"
        "import monitor.host.linux; from monitor.host.reader import HostReader\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"reader = HostReader(); trainers = {{{trainer.pid}: ('run', 0)}}\n"
        "for _ in range(2):\n"
        "    now = Moment.now(); reader.read(now); found = reader.processes(now, trainers, ())\n"
        "print(encode(found[0]).decode())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
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
    """It costs less CPU time than asking psutil for the same processes alone; best of three rounds."""
    trainers = {start(workers=8, threads=8).pid: ("run", rank) for rank in range(4)}

    def ours() -> None:
        now = Moment.now()
        reader.read(now)
        found, _ = reader.processes(now, trainers, ())
        assert len(found) == 36

    def psutils() -> None:
        for process in everybody:
            with process.oneshot():
                process.cpu_times(), process.memory_info(), process.num_threads()

    parents = [psutil.Process(pid) for pid in trainers]
    everybody = [process for parent in parents for process in (parent, *parent.children())]
    ours()
    assert min(cpu_seconds(ours) for _ in range(3)) < min(cpu_seconds(psutils) for _ in range(3))


def cpu_seconds(work: Callable[[], None]) -> float:
    begin = time.process_time()
    for _ in range(20):
        work()
    return time.process_time() - begin

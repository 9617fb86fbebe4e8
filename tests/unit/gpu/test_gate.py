"""The gate: deadlines hold, a stuck key does not stop others, threads do not pile up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from monitor.gpu.gate import Batch, Gate, Job
from tests.conftest import PATIENCE, wait_for


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate(patience=0.1)
    yield gate
    gate.close()


def soon(seconds: float = PATIENCE) -> float:
    return time.monotonic() + seconds


def until(gate: Gate, batch: Batch, good: Callable[[], bool]) -> None:
    """Watch a batch nobody waits for until it is as wanted."""
    wait_for(lambda: gate.watch(batch) or good())
    assert good()


def nvml_threads() -> int:
    return sum(thread.name == "gpumon-nvml" for thread in threading.enumerate())


def test_jobs_run_in_order_on_one_thread(gate: Gate) -> None:
    seen: list[tuple[int, int]] = []
    for _ in range(3):
        jobs = [Job(key, lambda key=key: seen.append((key, threading.get_ident()))) for key in range(4)]  # type: ignore[misc]
        gate.run(jobs, soon())
        assert all(job.done for job in jobs)
    assert [key for key, _ in seen] == [0, 1, 2, 3] * 3
    assert len({thread for _, thread in seen}) == 1 and seen[0][1] != threading.get_ident()


def test_results_and_errors_come_back(gate: Gate) -> None:
    good, bad = Job("good", lambda: 7), Job("bad", lambda: 1 // 0)
    after = Job("after", lambda: 8)
    gate.run([good, bad, after], soon())
    assert (good.result, after.result) == (7, 8)
    assert isinstance(bad.error, ZeroDivisionError)


def test_a_stuck_job_does_not_hold_the_others_back(gate: Gate) -> None:
    release = threading.Event()
    stuck, rest = Job(0, release.wait), [Job(key, lambda: None) for key in (1, 2, 3)]
    batch = gate.start([stuck, *rest])
    until(gate, batch, lambda: all(job.done for job in rest))
    assert not stuck.done
    assert gate.busy(0) and gate.stuck_since(0) is not None and not gate.busy(1)
    release.set()
    wait_for(lambda: not gate.busy(0))


def test_everything_stuck_ends_at_the_deadline_with_one_thread_a_key(gate: Gate) -> None:
    release, before = threading.Event(), nvml_threads()
    jobs = [Job(key, release.wait) for key in range(5)]
    batch = gate.start(jobs)
    until(gate, batch, lambda: all(job.started is not None for job in jobs))
    gate.wait(batch, soon(0.05))
    assert not release.is_set(), "whoever waits is let go while every call still hangs"
    assert all(gate.busy(key) for key in range(5)), "a stuck key gets no second job"
    assert nvml_threads() - before <= 5
    release.set()
    wait_for(lambda: nvml_threads() <= before)


def test_jobs_not_reached_before_the_deadline_are_taken_back() -> None:
    gate = Gate(patience=10.0)
    ran: list[int] = []
    release = threading.Event()
    late = Job(1, lambda: ran.append(1))
    gate.run([Job(0, release.wait), late], soon(0.1))
    assert late.done and isinstance(late.error, TimeoutError) and not gate.busy(1)
    release.set()
    wait_for(lambda: not gate.busy(0))
    assert ran == []


def test_work_goes_on_after_trouble(gate: Gate) -> None:
    release = threading.Event()
    gate.run([Job(0, release.wait)], soon(0.2))
    again = Job(1, lambda: "fine")
    gate.run([again], soon())
    assert again.result == "fine"
    release.set()


def test_watching_a_batch_nobody_waits_for(gate: Gate) -> None:
    release, done = threading.Event(), Job(1, lambda: "done")
    batch = gate.start([Job(0, release.wait), done])
    wait_for(lambda: gate.watch(batch) or done.done)
    assert done.result == "done" and gate.busy(0)
    release.set()
    wait_for(lambda: gate.watch(batch))


def test_drain_tells_whether_calls_came_home(gate: Gate) -> None:
    release = threading.Event()
    stuck = Job(0, release.wait)
    gate.start([stuck])
    wait_for(lambda: stuck.started is not None)
    assert not gate.drain(soon(0.1))
    threading.Timer(0.05, release.set).start()
    assert gate.drain(soon())


def test_an_empty_batch_is_finished(gate: Gate) -> None:
    gate.run([], soon())
    assert gate.drain(soon())

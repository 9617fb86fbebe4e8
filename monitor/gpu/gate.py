"""The one gate for all NVML calls: a supervised worker thread, and a deadline for the caller.

A driver call can block forever and cannot be interrupted. So calls run on a worker, one job after another;
when a job exceeds the patience, the worker is abandoned (it ends by itself if the call ever returns) and the
jobs queued behind it continue, each on its own thread, so one hung GPU costs the others nothing. A key whose
job is stuck gets no second one: never more threads than keys.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any


class Job:
    """One piece of work for one key (a GPU, the driver); `result` or `error` once `done`."""

    __slots__ = ("_batch", "done", "error", "function", "key", "result", "started")

    def __init__(self, key: Hashable, function: Callable[[], Any]) -> None:
        self.key = key
        self.function = function
        self.started: float | None = None
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None
        self._batch: Batch | None = None

    def run(self) -> None:
        self.started = time.monotonic()
        try:
            self.result = self.function()
        except Exception as error:  # noqa: BLE001 — a bug in one reading must not take the worker down
            self.error = error
        self.done = True
        if self._batch is not None:
            self._batch.one_done()

    def belongs_to(self, batch: Batch) -> None:
        self._batch = batch


class Batch:
    """Jobs handed to the gate together; `finished` is set when the last one is done or dropped."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = tuple(jobs)
        self.finished = threading.Event()
        self.worker: Worker | None = None
        self._left = len(jobs)
        self._lock = threading.Lock()
        for job in jobs:
            job.belongs_to(self)
        if not jobs:
            self.finished.set()

    def one_done(self) -> None:
        with self._lock:
            self._left -= 1
            last = self._left == 0
        if last:
            self.finished.set()


class Worker(threading.Thread):
    """A thread that works through jobs. Daemonic: a stuck call must not keep the process alive."""

    def __init__(self, *, once: bool = False) -> None:
        super().__init__(name="gpumon-nvml", daemon=True)
        self.jobs: deque[Job] = deque()
        self.current: Job | None = None
        self._once = once
        self._wake = threading.Semaphore(0)
        self._ended = False

    def give(self, jobs: Sequence[Job]) -> None:
        self.jobs.extend(jobs)
        self._wake.release()

    def run(self) -> None:
        while not self._ended:
            self._wake.acquire()
            self._work_off()
            self._ended |= self._once

    def _work_off(self) -> None:
        while True:
            try:
                self.current = self.jobs.popleft()
            except IndexError:
                self.current = None
                return
            self.current.run()

    def retire(self) -> list[Job]:
        """Abandon the worker; returns the jobs it has not started."""
        self._ended = True
        left = []
        while self.jobs:
            try:
                left.append(self.jobs.popleft())
            except IndexError:
                break
        self._wake.release()
        return left


class Gate:
    """Runs jobs on a worker, and replaces the worker if a job takes longer than `patience`."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._worker: Worker | None = None
        self._open: dict[Hashable, Job] = {}

    def busy(self, key: Hashable) -> bool:
        """True while an earlier job with this key has not returned."""
        job = self._open.get(key)
        if job is not None and job.done:
            del self._open[key]
            return False
        return job is not None

    def stuck_since(self, key: Hashable) -> float | None:
        """When (monotonic) this key's unreturned job began."""
        return self._open[key].started if self.busy(key) else None

    def run(self, jobs: Sequence[Job], deadline: float) -> None:
        """Start `jobs` and wait for them, at most until `deadline` (monotonic)."""
        self.wait(self.start(jobs), deadline)

    def start(self, jobs: Sequence[Job]) -> Batch:
        """Start `jobs` without waiting; their keys must not be busy."""
        batch = Batch(jobs)
        if not jobs:
            return batch
        for job in jobs:
            self._open[job.key] = job
        if self._worker is None:
            self._worker = Worker()
            self._worker.start()
        batch.worker = self._worker
        self._worker.give(jobs)
        return batch

    def wait(self, batch: Batch, deadline: float) -> None:
        """Wait for a batch. Anything not done afterwards is stuck, or was dropped at `deadline`."""
        while not batch.finished.wait(max(0.0, self._next_look(batch, deadline) - time.monotonic())):
            if time.monotonic() >= deadline:
                self._drop(batch)
                return
            self._spread(batch)

    def watch(self, batch: Batch) -> bool:
        """Check on a batch nobody waits for; True when it is finished."""
        if not batch.finished.is_set() and time.monotonic() >= self._next_look(batch, float("inf")):
            self._spread(batch)
        return batch.finished.is_set()

    def drain(self, deadline: float) -> bool:
        """Wait for all calls in flight; False if some are stuck beyond `deadline`."""
        for key in list(self._open):
            while self.busy(key) and time.monotonic() < deadline:
                time.sleep(0.005)
        return not any(self.busy(key) for key in list(self._open))

    def close(self) -> None:
        """Let the worker go. A stuck one ends when its call returns, or with the process."""
        worker, self._worker = self._worker, None
        for job in worker.retire() if worker else ():
            self._forget(job)

    def _next_look(self, batch: Batch, deadline: float) -> float:
        current = batch.worker.current if batch.worker else None
        if current is None or current.started is None or current.done:
            return deadline if batch.worker is None else min(deadline, time.monotonic() + self.patience)
        return min(deadline, current.started + self.patience)

    def _spread(self, batch: Batch) -> None:
        """The worker is stuck: abandon it and run the jobs behind it in parallel."""
        worker = batch.worker
        if worker is None or not self._overdue(worker):
            return
        for job in self._give_up(worker):
            replacement = Worker(once=True)
            replacement.start()
            replacement.give([job])
        batch.worker = None

    def _overdue(self, worker: Worker) -> bool:
        job = worker.current
        if job is None or job.started is None or job.done:
            return False
        return time.monotonic() - job.started >= self.patience

    def _drop(self, batch: Batch) -> None:
        """Time is up: jobs not started are taken back, started ones stay open until they return."""
        if batch.worker is None:
            return
        for job in self._give_up(batch.worker):
            self._forget(job)
            job.done = True
            job.error = TimeoutError("not reached before the deadline")
        batch.worker = None

    def _give_up(self, worker: Worker) -> list[Job]:
        if self._worker is worker:
            self._worker = None
        return worker.retire()

    def _forget(self, job: Job) -> None:
        if self._open.get(job.key) is job:
            del self._open[job.key]

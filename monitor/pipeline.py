"""The one place where a snapshot is made. The daemon calls `tick` once per interval; commands that
find no daemon call it themselves.

Every collector is timed by itself and reported in `Snapshot.collectors`. What a failed collector
would have given is absent from this snapshot, never the stale reading of an earlier one.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from monitor import __version__
from monitor.advice.engine import Engine
from monitor.advice.policy import DEFAULT_POLICY, load_policy
from monitor.clock import Moment
from monitor.gpu.source import GpuReadings, open_source
from monitor.host.reader import HostReader
from monitor.runs.reader import RunReader
from monitor.settings import Settings
from monitor.snapshot import Collector, Gpu, Host, Process, Snapshot, Source

if TYPE_CHECKING:
    from monitor.store.store import Store

T = TypeVar("T")
Subject = tuple[str, str, int | None, str | None]
"""What a prediction is about: run, rule, rank and GPU."""

log = logging.getLogger("gpumon.pipeline")


class Pipeline:
    """Collectors in order: rings, host, gpu, processes, runs, advice, and the store when there is one."""

    def __init__(self, settings: Settings, *, store: Store | None = None, run: str | None = None) -> None:
        """With `run`, only that run is looked at (`gpumon run` without a daemon)."""
        self.settings = settings
        self._store = store
        self._runs = RunReader(settings.dir, sink=store, run=run)
        self._host = HostReader()
        self._engine = Engine(load_policy(settings.policy) if settings.policy else DEFAULT_POLICY)
        self._source = open_source(
            settings.source, gpus=settings.gpus, scenario=settings.scenario, interval=settings.interval
        )
        self._states: dict[str, Collector] = {}
        self._left_out = 0
        self._promised: dict[Subject, float] = {}
        self._last: Snapshot | None = None

    def tick(self) -> Snapshot:
        """Ask every collector once and make the snapshot of this moment."""
        now = Moment.now()
        snapshot = self._collect(now)
        findings = self._timed("advice", now, lambda: self._engine.evaluate(snapshot)) or ()
        whole = msgspec.structs.replace(snapshot, findings=findings, collectors=tuple(self._states.values()))
        if self._store is not None:
            store = self._store
            self._timed("store", now, lambda: self._keep(store, whole))
        self._last = whole
        return whole

    def _keep(self, store: Store, snapshot: Snapshot) -> None:
        """History, and in the ledger what each finding promises, when the promise changes."""
        store.append(snapshot)
        runs = {run.id: run for run in snapshot.runs}
        promised: dict[Subject, float] = {}
        for finding in snapshot.findings:
            run = runs.get(finding.run or "")
            if run is None or finding.speedup is None:
                continue
            key, promise = (run.id, finding.id, finding.rank, finding.gpu), round(finding.speedup.likely, 1)
            if self._promised.get(key) != promise:
                store.record_prediction(run, finding)
            promised[key] = promise
        self._promised = promised

    def close(self) -> None:
        """Let go of rings and driver; safe to call twice."""
        self._runs.close()
        self._source.close()

    def _collect(self, now: Moment) -> Snapshot:
        self._timed("rings", now, lambda: self._runs.poll(now))
        host = self._timed("host", now, lambda: self._host.read(now)) or Host(socket.gethostname())
        readings = self._timed("gpu", now, lambda: self._source.read(now, self._last)) or NO_READINGS
        processes = self._timed("processes", now, lambda: self._processes(now, readings)) or ()
        runs = self._timed("runs", now, lambda: self._runs.runs(now, readings.gpus, processes)) or ()
        return Snapshot(
            seq=self._last.seq + 1 if self._last else 1,
            time=now.wall,
            monotonic=now.monotonic,
            interval_seconds=self.settings.interval,
            source=readings.source,
            host=host,
            gpus=readings.gpus,
            processes=processes,
            runs=runs,
            dropped={**self._runs.dropped, "processes": self._left_out},
            version=__version__,
        )

    def _processes(self, now: Moment, readings: GpuReadings) -> tuple[Process, ...]:
        processes, left_out = self._host.processes(now, self._runs.pids(), _gpu_pids(readings.gpus))
        self._left_out += left_out
        return processes

    def _timed(self, name: str, now: Moment, collect: Callable[[], T]) -> T | None:
        """Run one collector; whatever it raises costs its own readings, is counted and logged, and
        takes neither the other collectors nor the daemon down."""
        begin = time.perf_counter()
        failure: Exception | None = None
        result: T | None = None
        try:
            result = collect()
        except Exception as error:  # noqa: BLE001 — the barrier between collectors, see above
            failure = error
        self._note(name, now, time.perf_counter() - begin, failure)
        return result

    def _note(self, name: str, now: Moment, seconds: float, failure: Exception | None) -> None:
        before = self._states.get(name)
        error = f"{type(failure).__name__}: {failure}" if failure else None
        if error and not (before and before.error == error):
            log.warning("collector %s failed: %s", name, error, exc_info=failure)
        elif before and before.error and not error:
            log.info("collector %s works again", name)
        self._states[name] = Collector(
            name=name,
            ok=error is None,
            seconds=seconds,
            last_success=before.last_success if error and before else None if error else now.wall,
            failures=(before.failures if before else 0) + (error is not None),
            error=error,
        )


NO_READINGS = GpuReadings(Source("none", ok=False, detail="the GPU collector failed"), ())


def _gpu_pids(gpus: tuple[Gpu, ...]) -> set[int]:
    return {process.pid for gpu in gpus for process in gpu.processes}

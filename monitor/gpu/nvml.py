"""The NVML source: maintains the driver connection, its GPUs and their readings, whatever goes wrong.

Three things happen on a tick: the driver is (re)started if it is down and due; every GPU that is not stuck is
read through the gate; and from time to time it checks whether GPUs were added or removed. Nothing here blocks
past the deadline, whatever the driver does.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from monitor.gpu import driver
from monitor.gpu.awaited import FIRST_PAUSE, LONGEST_PAUSE
from monitor.gpu.calls import DriverGone, NvmlFailure
from monitor.gpu.device import Device, free
from monitor.gpu.events import XidLogs
from monitor.gpu.gate import Gate, Job
from monitor.gpu.slow_readings import SlowLane
from monitor.gpu.source import GpuReadings
from monitor.model.clock import Moment
from monitor.model.gpu import Gpu, Source
from monitor.model.snapshot import Snapshot
from monitor.model.units import duration

DRIVER = "driver"
COUNT = "count"
START_WAIT = 3.0
"""How long opening the source and the first reading may wait for a slow driver start."""
RESCAN = 2.0
"""Our choice: seconds between two counts of the GPUs."""
LOST_RESTART, LONGEST_LOST_RESTART = 60.0, 960.0
"""A GPU that was reset is visible only to a new NVML initialisation. If one is lost, try that after a minute,
then less and less often, since it interrupts the rates of the healthy ones."""
LOST_KEPT = 600.0
"""A GPU the driver no longer lists is shown as lost for this long before it is forgotten."""
SLOW_WAIT = 0.1
"""A restart waits this long for a PCIe measurement in flight, which takes 40 ms."""
CLOSE_WAIT = 0.6
"""Our choice: a daemon must exit within two seconds even if the driver hangs."""


class NvmlSource:
    """See the module's docstring. `required`: missing NVML is an error; otherwise "none" with the reason."""

    def __init__(
        self, *, interval: float = 1.0, required: bool = False, listing: Path = driver.PROC_GPUS
    ) -> None:
        self._required = required
        self._listing = listing
        self._gate = Gate(patience=min(2.0, max(0.25, interval / 2)))
        self._slow = SlowLane()
        self._devices: list[Device] = []
        self._xids = XidLogs()
        self._missing: dict[str, tuple[Gpu, float]] = {}
        self._versions = driver.Versions()
        self._up = False
        self._initialised = False
        self._ever_up = False
        self._detail: str | None = None
        self._starting: Job | None = None
        self._retry_at = 0.0
        self._pause = FIRST_PAUSE
        self._rescan_at = 0.0
        self._restart_at = 0.0
        self._lost_pause = LOST_RESTART
        self._listed: frozenset[str] = frozenset()
        self._first = True
        self._start(time.monotonic(), time.monotonic() + START_WAIT)

    def read(self, now: Moment, previous: Snapshot | None) -> GpuReadings:
        clock = time.monotonic()
        deadline = clock + (START_WAIT if self._first else 2 * self._gate.patience)
        self._first = False
        if not self._up:
            self._start(clock, deadline)
        if self._up:
            self._read_gpus(now, clock, deadline)
        if self._up:
            self._slow.poke(clock, [(d.index, d.session.throughput) for d in self._devices if d.session])
        return GpuReadings(self._source(clock), self._gpus(now.monotonic))

    def close(self) -> None:
        """Wait for calls in flight, then shut NVML down; a stuck driver is left until the process exits."""
        deadline = time.monotonic() + CLOSE_WAIT
        drained = self._slow.halt(deadline) and self._gate.drain(deadline)
        if drained and self._initialised:
            self._gate.run([Job(DRIVER, self._end)], deadline + CLOSE_WAIT)
            self._initialised = self._up = False
        self._gate.close()

    # ── the driver ───────────────────────────────────────────────────────────────────────────────

    def _start(self, clock: float, deadline: float) -> None:
        """Start NVML if that is due, or check on an earlier start that took too long."""
        if self._starting is None:
            if clock < self._retry_at or self._gate.busy(DRIVER):
                return
            stop_first = self._slow.halt(min(deadline, clock + SLOW_WAIT)) and self._nothing_stuck()
            self._starting = Job(DRIVER, partial(driver.start, stop_first))
            self._gate.run([self._starting], deadline)
        job = self._starting
        if not job.done:
            waited = time.monotonic() - (job.started or clock)
            self._detail = f"The NVIDIA driver has not answered for {duration(waited)}: see dmesg for errors."
            return
        self._starting = None
        if isinstance(job.result, driver.Started):
            self._started(job.result, clock)
        else:
            self._start_failed(job.error, clock)

    def _started(self, started: driver.Started, clock: float) -> None:
        self._up = self._initialised = self._ever_up = True
        self._versions = started.versions
        self._detail = None if started.count else "The NVIDIA driver works but has no GPU."
        self._pause = FIRST_PAUSE
        self._rescan_at, self._restart_at = clock + RESCAN, clock + self._lost_pause
        self._listed = driver.listed_gpus(self._listing)
        self._adopt(started.count, clock)

    def _start_failed(self, error: Exception | None, clock: float) -> None:
        code = getattr(error, "value", getattr(error, "code", None))
        self._detail = driver.explain(code) if isinstance(code, int) else f"NVML does not start: {error}."
        self._initialised = False
        self._retry_at = clock + self._pause
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def _restart(self, reason: str | None, clock: float) -> None:
        """Drop the connection; the next reading restarts it."""
        self._up = False
        self._retry_at = clock
        self._detail = reason
        self._devices = [device.renewed() for device in self._devices]
        for device in self._devices:
            if reason and device.state == "ok":
                device.state, device.detail = "error", reason

    def _nothing_stuck(self) -> bool:
        keys = [device.index for device in self._devices]
        return not any(self._gate.busy(key) for key in (*keys, COUNT))

    def _end(self) -> None:
        for device in self._devices:
            if device.session is not None:
                free(device.session)
        driver.stop()

    # ── the GPUs ─────────────────────────────────────────────────────────────────────────────────

    def _adopt(self, count: int, clock: float) -> None:
        """Match the number of devices the driver has. If there are fewer, any of the old ones may be the one
        that left, since numbers shift: `_gpus` keeps those whose UUID does not turn up again."""
        if count < len(self._devices):
            for device in self._devices:
                if device.last is not None:
                    self._missing[device.uuid] = (device.shown(clock), clock)
        kept = self._devices[:count]
        self._devices = kept + [Device(index, self._xids) for index in range(len(kept), count)]

    def _read_gpus(self, now: Moment, clock: float, deadline: float) -> None:
        jobs = [Job(device.index, partial(device.read, now)) for device in self._free_devices()]
        rescan = self._rescan_job(clock)
        self._gate.run([*jobs, *([rescan] if rescan else [])], deadline)
        for job in jobs:
            self._after(job)
        self._mark_stuck(clock)
        gone = next((job.error for job in jobs if isinstance(job.error, DriverGone)), None)
        if gone is not None:
            self._restart(driver.explain(gone.code), clock)
        elif rescan is not None and rescan.done:
            self._after_rescan(rescan, clock)

    def _free_devices(self) -> list[Device]:
        """Devices that are not stuck, longest unread first, so that none starves on a slow driver."""
        free_ones = [device for device in self._devices if not self._gate.busy(device.index)]
        return sorted(free_ones, key=lambda device: device.last_good or 0.0)

    def _after(self, job: Job) -> None:
        """A failure that is not an NVML answer is our bug: report it for that GPU, and go on."""
        if job.error is not None and not isinstance(job.error, (NvmlFailure, TimeoutError)):
            device = self._devices[int(str(job.key))]
            device.state, device.detail = "error", f"reading failed: {job.error!r}"

    def _mark_stuck(self, clock: float) -> None:
        for device in self._devices:
            since = self._gate.stuck_since(device.index)
            if since is not None:
                device.state = "hung"
                device.detail = f"a driver call has not returned for {duration(clock - since)}"

    def _rescan_job(self, clock: float) -> Job | None:
        if clock < self._rescan_at or self._gate.busy(COUNT):
            return None
        self._rescan_at = clock + RESCAN
        return Job(COUNT, driver.count_gpus)

    def _after_rescan(self, job: Job, clock: float) -> None:
        if isinstance(job.error, DriverGone):
            self._restart(driver.explain(job.error.code), clock)
        elif job.error is None and (self._gpus_changed(job.result) or self._lost_is_due(clock)):
            self._restart(None, clock)

    def _gpus_changed(self, count: int) -> bool:
        return count != len(self._devices) or driver.listed_gpus(self._listing) != self._listed

    def _lost_is_due(self, clock: float) -> bool:
        """If a GPU is lost, NVML is restarted from time to time, at growing intervals."""
        if not self._missing and all(device.state != "lost" for device in self._devices):
            self._lost_pause = LOST_RESTART
            self._restart_at = clock + LOST_RESTART
            return False
        if clock < self._restart_at:
            return False
        self._lost_pause = min(LONGEST_LOST_RESTART, self._lost_pause * 2)
        return True

    # ── what the snapshot sees ───────────────────────────────────────────────────────────────────

    def _gpus(self, now: float) -> tuple[Gpu, ...]:
        shown = [device.shown(now) for device in self._devices]
        present = {gpu.uuid for gpu in shown}
        self._missing = {
            uuid: entry
            for uuid, entry in self._missing.items()
            if uuid not in present and now - entry[1] < LOST_KEPT
        }
        for gpu, since in self._missing.values():
            detail = "the driver no longer lists this GPU"
            age = gpu.age_seconds + now - since
            shown.append(msgspec.structs.replace(gpu, state="lost", state_detail=detail, age_seconds=age))
        return tuple(shown)

    def _source(self, clock: float) -> Source:
        kind: Literal["nvml", "none"] = "nvml" if self._required or self._ever_up else "none"
        hung = bool(self._devices) and all(device.state == "hung" for device in self._devices)
        detail = "The NVIDIA driver does not answer: no call returns." if self._up and hung else self._detail
        return Source(
            kind=kind,
            ok=kind == "none" or (self._up and not hung),
            detail=detail,
            driver_version=self._versions.driver,
            cuda_version=self._versions.cuda,
            nvml_version=self._versions.nvml,
        )

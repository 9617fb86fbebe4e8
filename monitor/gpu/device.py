"""One GPU: obtains its handle, reads it, and turns the readings into a `Gpu`.

Runs on the gate's worker. What it has learned (last good reading, XIDs) survives the loss of the card or a
driver reload; everything bound to a handle is then rebuilt.
"""

from __future__ import annotations

from typing import Any

import msgspec

from monitor.gpu.calls import ABSENT_CODES, NO_DATA_CODES, GpuGone, NvmlFailure, Reading, Values, error_text
from monitor.gpu.events import XidEvents, XidLogs
from monitor.gpu.fields import FieldBatch, seldom_fields, tick_fields
from monitor.gpu.gpm import Gpm
from monitor.gpu.identity import identify, open_handle
from monitor.gpu.mig import Mig
from monitor.gpu.nvlink import Links, Traffic
from monitor.gpu.processes import Processes
from monitor.gpu.readings import SELDOM, Parts, every_tick, once, seldom
from monitor.gpu.samples import ranges, sample_buffers
from monitor.gpu.slow_readings import PcieThroughput
from monitor.model.clock import Moment
from monitor.model.gpu import Activity, Errors, Gpu, GpuState, Nvlink, Pcie

LONGEST_PAUSE = 15.0
"""Our choice: the longest pause before a retry."""


class Session:
    """Everything bound to one handle."""

    def __init__(self, index: int) -> None:
        handle = open_handle(index)
        self.identity: Values = identify(index, handle)
        self.parts = Parts()
        parts = self.parts
        links = Links(handle, parts.nvlink)
        self.tick: list[Reading] = [
            *every_tick(handle, parts),
            FieldBatch(handle, tick_fields(parts.gpu, parts.pcie, parts.traffic)),
            Traffic(parts.traffic, links, parts.nvlink),
            Gpm(handle, parts.activity),
        ]
        self.seldom: list[Reading] = [
            *seldom(handle, parts),
            FieldBatch(handle, seldom_fields(parts.errors, parts.gpu, parts.throttle_times)),
            links,
        ]
        self.once: list[Reading] = once(handle, parts)
        self.events = XidEvents(handle)
        self.processes = Processes(handle)
        self.mig = Mig(handle)
        self.samples = sample_buffers(handle)
        self.throughput = PcieThroughput(handle)
        self.seldom_at = 0.0
        self.answering = False

    def ask(self, now: float) -> int:
        """Take all readings that are due; returns how many answered. Raises if the GPU or driver is gone."""
        self.mig.refresh(now)
        if self.mig.changed:
            for reading in (*self.tick, *self.seldom, *self.once):
                reading.ask_again()
        answered = sum([reading.collect(now) for reading in self.tick])
        if now >= self.seldom_at:
            for reading in self.seldom:
                reading.collect(now)
            self.once = [reading for reading in self.once if not _settled(reading, now)]
            self.seldom_at = now + SELDOM
        return answered

    def complaint(self) -> str | None:
        """Why nothing answered, if that is an error rather than plain absence."""
        for reading in self.tick:
            if reading.code and reading.code not in ABSENT_CODES and reading.code not in NO_DATA_CODES:
                return error_text(reading.code)
        return None


class Device:
    """The GPU at `index`, for as long as the source lives."""

    def __init__(self, index: int, xids: XidLogs) -> None:
        self.index = index
        self.last: Gpu | None = None
        self.last_good: float | None = None
        self.state: GpuState = "ok"
        self.detail: str | None = None
        self.session: Session | None = None
        self._events: XidEvents | None = None
        self._xids = xids
        self._retry_at = 0.0
        self._pause = 1.0

    @property
    def uuid(self) -> str:
        return self.last.uuid if self.last else f"GPU-unknown-{self.index}"

    def renewed(self) -> Device:
        """The same GPU without its handle, which means nothing after a driver reload. A new object, because a
        thread stuck in a call of the old one may return and must not bring the handle back."""
        fresh = Device(self.index, self._xids)
        fresh.last, fresh.last_good = self.last, self.last_good
        fresh.state, fresh.detail = self.state, self.detail
        return fresh

    def read(self, now: Moment) -> None:
        """Take one reading into `last`; a lost GPU is retried at growing intervals."""
        try:
            self._poll_events(now)
            if now.monotonic >= self._retry_at:
                self._read(now)
        except GpuGone as failure:
            self._failed("lost", failure, now)
        except NvmlFailure as failure:
            if type(failure) is not NvmlFailure:
                raise
            self._failed("error", failure, now)

    def shown(self, now: float) -> Gpu:
        """What a snapshot shows for this GPU; anything but a fresh reading carries its age."""
        last = self.last or Gpu(index=self.index, uuid=self.uuid)
        if self.state == "ok" and self.last_good == now:
            return last
        age = now - self.last_good if self.last_good is not None else 0.0
        return msgspec.structs.replace(
            last,
            state=self.state if self.state != "ok" else "hung",
            state_detail=self.detail or "not read before the deadline",
            age_seconds=max(0.0, age),
            errors=self._errors(last.errors),
        )

    def _read(self, now: Moment) -> None:
        if self.session is None:
            self._open(now)
        session = self.session
        assert session is not None
        answered = session.ask(now.monotonic)
        complaint = None if answered else session.complaint()
        if session.answering and not answered:
            self.session, complaint = None, complaint or "the GPU has stopped answering"
        session.answering = answered > 0
        fresh = self._gpu(session, now.monotonic)
        if complaint is not None:
            self.last = self.last or fresh
            self.state, self.detail = "error", complaint
            return
        self.last, self.last_good = fresh, now.monotonic
        self.state, self.detail, self._pause = "ok", None, 1.0

    def _open(self, now: Moment) -> None:
        """Take the handle. A lost GPU's event set is kept until then: it may still report why."""
        session = Session(self.index)
        if self._events is not None:
            self._events.free()
        self._xids.opened(session.events.handle, session.identity["uuid"])
        session.events.poll(now.monotonic, now.wall, self._xids)
        self.session, self._events = session, session.events

    def _poll_events(self, now: Moment) -> None:
        if self._events is None:
            return
        try:
            self._events.poll(now.monotonic, now.wall, self._xids)
        except GpuGone:
            self._events = None
            if self.session is not None:
                raise

    def _gpu(self, session: Session, now: float) -> Gpu:
        parts = session.parts
        instances = session.mig.uuids() if session.mig.enabled else {}
        return Gpu(
            **session.identity,
            **parts.gpu,
            pcie=_pcie(parts.pcie, session.throughput, now),
            nvlink=Nvlink(**parts.nvlink),
            errors=self._errors(Errors(**parts.errors), session.identity["uuid"]),
            activity=Activity(**parts.activity),
            throttle_seconds={key: time for key, time in parts.throttle_times.items() if time is not None},
            mig_enabled=session.mig.enabled,
            mig=session.mig.read(),
            processes=session.processes.fetch(now, instances),
            ranges=ranges(session.samples, now),
        )

    def _errors(self, errors: Errors, uuid: str | None = None) -> Errors:
        log = self._xids.by_uuid.get(uuid or self.uuid)
        if log is None or not log.counts:
            return errors
        return msgspec.structs.replace(
            errors, xid_counts=log.counts, xid_last=log.last, xid_last_time=log.last_time
        )

    def _failed(self, state: GpuState, failure: NvmlFailure, now: Moment) -> None:
        if self.state != "lost":  # any further failure of a lost GPU is a consequence
            self.state, self.detail = state, f"{failure} (NVML code {failure.code})"
        self.session = None
        self._retry_at = now.monotonic + self._pause
        self._pause = min(LONGEST_PAUSE, self._pause * 2)


def _settled(reading: Reading, now: float) -> bool:
    """A fixed fact is asked for until it answers or proves unsupported."""
    return reading.collect(now) or reading.code in ABSENT_CODES


def _pcie(values: Values, throughput: PcieThroughput, now: float) -> Pcie:
    """Counters where the card has them, else the last measurement of the slow lane."""
    if values.get("receive_bytes_per_second") is None and values.get("transmit_bytes_per_second") is None:
        transmit, receive = throughput.latest(now)
        values = {**values, "transmit_bytes_per_second": transmit, "receive_bytes_per_second": receive}
    return Pcie(**values)


def free(session: Any) -> None:
    """Release a session's NVML resources; only while the driver is up and nothing is stuck."""
    session.events.free()
    for reading in session.tick:
        if isinstance(reading, Gpm):
            reading.free()

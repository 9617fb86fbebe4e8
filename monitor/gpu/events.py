"""XID events: the driver's error reports, collected from one event set per GPU.

The sets are polled without waiting, so a hung GPU cannot hold up the events of the others. An event counts
for the GPU it names, whichever set it arrives in.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml
from msgspec import Struct, field

from monitor.gpu.calls import ABSENT_CODES, RETRY_ABSENT, check, find_function

MOST_PER_TICK = 64


class XidLog(Struct):
    """What one GPU has reported since the daemon started; outlives handles and driver reloads."""

    counts: dict[str, int] = field(default_factory=dict)
    last: int | None = None
    last_time: float | None = None

    def add(self, code: int, wall: float) -> None:
        self.counts = {**self.counts, str(code): self.counts.get(str(code), 0) + 1}
        self.last, self.last_time = code, wall


class XidLogs(Struct):
    """The logs of all GPUs, and which handle belongs to which."""

    by_uuid: dict[str, XidLog] = field(default_factory=dict)
    _uuids: dict[int | None, str] = field(default_factory=dict)

    def opened(self, handle: Any, uuid: str) -> None:
        self._uuids[_address(handle)] = uuid

    def of(self, handle: Any) -> XidLog | None:
        """None: no known GPU has this handle, which may be left over from before a driver reload."""
        uuid = self._uuids.get(_address(handle))
        return None if uuid is None else self.by_uuid.setdefault(uuid, XidLog())


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


class XidEvents:
    """The event set of one GPU."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self._set: Any = None
        self._wait = find_function("nvmlEventSetWait_v2")
        self._data = pynvml.c_nvmlEventData_t()
        self._argument = ctypes.byref(self._data)
        self._retry_at = 0.0

    def poll(self, now: float, wall: float, logs: XidLogs) -> None:
        """Move new events into `logs`; never waits."""
        if now < self._retry_at or self._wait is None:
            return
        if self._set is None and not self._register(now):
            return
        for _ in range(MOST_PER_TICK):
            code = self._wait(self._set, self._argument, 0)
            if code:
                self._ended(code, now)
                return
            log = logs.of(self._data.device) or logs.of(self.handle)
            if log is not None and self._data.eventType & pynvml.nvmlEventTypeXidCriticalError:
                log.add(int(self._data.eventData), wall)

    def _register(self, now: float) -> bool:
        handle, found = pynvml.c_nvmlEventSet_t(), find_function("nvmlEventSetCreate")
        code = found(ctypes.byref(handle)) if found else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
        if not code:
            kinds = ctypes.c_ulonglong(pynvml.nvmlEventTypeXidCriticalError)
            code = pynvml.nvmlLib.nvmlDeviceRegisterEvents(self.handle, kinds, handle)
            self._set = handle
        if code:
            self.free()
            self._ended(code, now)
        return not code

    def _ended(self, code: int, now: float) -> None:
        if code == pynvml.NVML_ERROR_TIMEOUT:
            return
        check(code)
        self._retry_at = now + (RETRY_ABSENT if code in ABSENT_CODES else 10.0)

    def free(self) -> None:
        """Release the set; only while the driver is up."""
        if self._set is not None:
            pynvml.nvmlLib.nvmlEventSetFree(self._set)
            self._set = None

    def ask_again(self) -> None:
        self._retry_at = 0.0

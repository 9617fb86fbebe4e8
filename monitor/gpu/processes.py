"""Processes on a GPU as the driver sees them: memory, and how much of the SMs they used."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Literal

import pynvml

from monitor.gpu.calls import (
    ABSENT_CODES,
    RETRY_ABSENT,
    ULONGLONG_NOT_AVAILABLE,
    check,
    find_function,
)
from monitor.model.gpu import GpuProcess

Kind = Literal["compute", "graphics", "mps"]
Instances = Mapping[tuple[int, int], str]
"""(GPU instance, compute instance) → MIG UUID."""

UNUSED_SECONDS = 5.0
"""Our choice: few trainings draw or share a card through MPS, so those lists, once empty, are asked for after
this long."""
FUNCTIONS: tuple[tuple[Kind, str], ...] = (
    ("compute", "nvmlDeviceGetComputeRunningProcesses_v3"),
    ("graphics", "nvmlDeviceGetGraphicsRunningProcesses_v3"),
    ("mps", "nvmlDeviceGetMPSComputeRunningProcesses_v3"),
)


class _List:
    """One kind of process list, in a buffer that grows when the driver says it is too small."""

    def __init__(self, handle: Any, kind: Kind, function: str) -> None:
        self.kind = kind
        self._handle = handle
        self._function = find_function(function)
        self._count = ctypes.c_uint()
        self._buffer = (pynvml.c_nvmlProcessInfo_v2_t * 32)()
        self._retry_at = 0.0

    def fetch(self, now: float) -> list[Any]:
        if now < self._retry_at or self._function is None:
            return []
        code = self._call()
        if code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
            self._buffer = (pynvml.c_nvmlProcessInfo_v2_t * (2 * self._count.value + 8))()
            code = self._call()
        if code:
            check(code)
            if code in ABSENT_CODES:
                self._retry_at = now + RETRY_ABSENT
            return []
        if not self._count.value and self.kind != "compute":
            self._retry_at = now + UNUSED_SECONDS
        return list(self._buffer[: self._count.value])

    def _call(self) -> int:
        self._count.value = len(self._buffer)
        return self._function(self._handle, ctypes.byref(self._count), self._buffer) if self._function else 13


class _SmUse:
    """SM use per process since the last tick. The driver lists only processes that used the GPU at all, so an
    unlisted one used 0; None is for cards that do not report it."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._function = find_function("nvmlDeviceGetProcessUtilization")
        self._count = ctypes.c_uint()
        self._buffer = (pynvml.c_nvmlProcessUtilizationSample_t * 64)()
        self._last = 0
        self._retry_at = 0.0

    def fetch(self, now: float) -> dict[int, float] | None:
        """pid → mean SM ratio over the samples since the last call."""
        if now < self._retry_at or self._function is None:
            return None
        code = self._call()
        if code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
            self._buffer = (pynvml.c_nvmlProcessUtilizationSample_t * (2 * self._count.value + 8))()
            code = self._call()
        if code == pynvml.NVML_ERROR_NOT_FOUND:
            return {}
        if code:
            check(code)
            self._retry_at = now + (RETRY_ABSENT if code in ABSENT_CODES else 10.0)
            return None
        return self._means()

    def _call(self) -> int:
        self._count.value = len(self._buffer)
        if self._function is None:
            return int(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        last = ctypes.c_ulonglong(self._last)
        return self._function(self._handle, self._buffer, ctypes.byref(self._count), last)

    def _means(self) -> dict[int, float]:
        samples: dict[int, list[int]] = {}
        newest = self._last
        for entry in self._buffer[: self._count.value]:
            stamp = entry.timeStamp
            if stamp > self._last:
                samples.setdefault(entry.pid, []).append(entry.smUtil)
                newest = max(newest, stamp)
        self._last = newest
        return {pid: sum(values) / len(values) / 100.0 for pid, values in samples.items()}


class Processes:
    """All processes on one GPU."""

    def __init__(self, handle: Any) -> None:
        self._lists = [_List(handle, kind, function) for kind, function in FUNCTIONS]
        self._sm = _SmUse(handle)

    def fetch(self, now: float, instances: Instances) -> tuple[GpuProcess, ...]:
        """Every process once; one that both computes and draws counts as compute."""
        found: dict[tuple[int, str | None], GpuProcess] = {}
        entries = [(part.kind, info) for part in self._lists for info in part.fetch(now)]
        use = self._sm.fetch(now) if entries else None
        for kind, info in entries:
            mig = instances.get((info.gpuInstanceId, info.computeInstanceId)) if instances else None
            if (info.pid, mig) not in found:
                found[info.pid, mig] = GpuProcess(
                    pid=info.pid,
                    kind=kind,
                    memory_bytes=_memory(info.usedGpuMemory),
                    sm_ratio=use.get(info.pid, 0.0) if use is not None else None,
                    mig_uuid=mig,
                )
        return tuple(found.values())


def _memory(value: int | None) -> int | None:
    return None if value in (None, ULONGLONG_NOT_AVAILABLE) else value

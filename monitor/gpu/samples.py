"""What happened between two ticks: the driver's own sample buffers, at no extra polling.

The driver samples power, utilization and the SM clock some 6 to 50 times a second and keeps the
last values. One call per kind fetches those newer than the last one seen: min, mean and max of a tick
that a single reading a second would miss.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pynvml

from monitor.gpu.calls import ABSENT_CODES, NO_DATA_CODES, RETRY_ABSENT, check, find_function
from monitor.snapshot import Range

CAPACITY = 128
KINDS = (
    ("power_watts", pynvml.NVML_TOTAL_POWER_SAMPLES, 1e-3),
    ("utilization_ratio", pynvml.NVML_GPU_UTILIZATION_SAMPLES, 1e-2),
    ("sm_clock_hertz", pynvml.NVML_PROCESSOR_CLK_SAMPLES, 1e6),
)
_FORMATS = {0: "=Qd", 1: "=QI4x", 2: "=QQ", 3: "=QQ", 4: "=Qq", 5: "=Qi4x"}
"""How a sample (time stamp, value) lies in memory, by NVML's value type."""


class SampleBuffer:
    """One kind of sample of one GPU."""

    def __init__(self, handle: Any, key: str, kind: int, scale: float) -> None:
        self.key = key
        self._function = find_function("nvmlDeviceGetSamples")
        self._handle = handle
        self._kind = kind
        self._scale = scale
        self._last = 0
        self._type = ctypes.c_uint()
        self._count = ctypes.c_uint()
        self._samples = (pynvml.c_nvmlSample_t * CAPACITY)()
        self._bytes = memoryview(self._samples).cast("B")
        self._retry_at = 0.0

    def fetch(self, now: float) -> Range | None:
        """The range since the last call; None when there were no samples."""
        if now < self._retry_at or self._function is None:
            return None
        self._count.value = CAPACITY
        code = self._function(
            self._handle,
            self._kind,
            ctypes.c_ulonglong(self._last),
            ctypes.byref(self._type),
            ctypes.byref(self._count),
            self._samples,
        )
        if code:
            self._failed(code, now)
            return None
        return self._range()

    def _failed(self, code: int, now: float) -> None:
        check(code)
        if code in ABSENT_CODES:
            self._retry_at = now + RETRY_ABSENT
        elif code not in NO_DATA_CODES:
            self._retry_at = now + 10.0

    def _range(self) -> Range | None:
        """Samples at or before the last seen one, and empty slots (time 0), do not count."""
        count, form = self._count.value, _FORMATS.get(self._type.value)
        if not count or form is None:
            return None
        pairs = struct.iter_unpack(form, self._bytes[: 16 * min(count, CAPACITY)])
        last = self._last
        fresh = [pair for pair in pairs if pair[0] > last]
        if not fresh:
            return None
        self._last = max(fresh)[0]
        first_time = last == 0
        values = [value for _, value in fresh]
        if first_time:
            return None
        scale = self._scale
        return Range(min(values) * scale, sum(values) / len(values) * scale, max(values) * scale, len(values))


def sample_buffers(handle: Any) -> list[SampleBuffer]:
    return [SampleBuffer(handle, key, kind, scale) for key, kind, scale in KINDS]


def ranges(buffers: list[SampleBuffer], now: float) -> dict[str, Range]:
    """Field name → range since the last tick, for the kinds this card samples."""
    found = {}
    for buffer in buffers:
        fetched = buffer.fetch(now)
        if fetched is not None:
            found[buffer.key] = fetched
    return found

"""What happened between two ticks, from the driver's own sample buffers: no extra polling.

The driver samples power, utilization and the SM clock some 6 to 50 times a second and keeps the latest
values. One call per kind fetches those newer than the last one seen, giving a tick's min, mean and max, which
one reading a second would miss.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml

from monitor.gpu.calls import ABSENT_CODES, NO_DATA_CODES, RETRY_ABSENT, check, find_function
from monitor.model.gpu import Range

CAPACITY = 128
KINDS = (
    ("power_watts", pynvml.NVML_TOTAL_POWER_SAMPLES, 1e-3),
    ("utilization_ratio", pynvml.NVML_GPU_UTILIZATION_SAMPLES, 1e-2),
    ("sm_clock_hertz", pynvml.NVML_PROCESSOR_CLK_SAMPLES, 1e6),
)
_FORMATS = {0: ("d", 1), 1: ("I", 2), 2: ("Q", 1), 3: ("Q", 1), 4: ("q", 1), 5: ("i", 2)}
"""By NVML's value type: the item type, and how many such items fit into a value's eight bytes."""


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
        whole: Any = memoryview(self._samples).cast("B")
        self._views = {kind: whole.cast(kind) for kind, _ in _FORMATS.values()}
        self._references = (ctypes.byref(self._type), ctypes.byref(self._count), self._samples)
        self._retry_at = 0.0

    def fetch(self, now: float) -> Range | None:
        """The range since the last call; None if there were no samples."""
        if now < self._retry_at or self._function is None:
            return None
        self._count.value = CAPACITY
        code = self._function(self._handle, self._kind, ctypes.c_ulonglong(self._last), *self._references)
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
        """Ignores samples up to the last one seen, empty slots (time 0), and those from before the first
        call, which span more than a tick."""
        count, layout = min(self._count.value, CAPACITY), _FORMATS.get(self._type.value)
        if not count or layout is None:
            return None
        times = self._views["Q"][: 2 * count : 2].tolist()
        kind, width = layout
        values = self._views[kind][width : 2 * width * count : 2 * width].tolist()
        before, self._last = self._last, max(self._last, *times)
        if min(times) <= before:
            values = [value for value, stamp in zip(values, times, strict=True) if stamp > before]
        if not values or not before:
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

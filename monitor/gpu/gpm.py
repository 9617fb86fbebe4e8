"""GPM (Hopper and newer): what the SMs really did between two ticks, from two counter samples."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml

from monitor.gpu.calls import ABSENT_CODES, RETRY_ABSENT, Values, bare, check, find_function

METRICS = (
    ("graphics_active_ratio", pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL),
    ("sm_active_ratio", pynvml.NVML_GPM_METRIC_SM_UTIL),
    ("sm_occupancy_ratio", pynvml.NVML_GPM_METRIC_SM_OCCUPANCY),
    ("tensor_active_ratio", pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL),
    ("dram_active_ratio", pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL),
    ("fp64_active_ratio", pynvml.NVML_GPM_METRIC_FP64_UTIL),
    ("fp32_active_ratio", pynvml.NVML_GPM_METRIC_FP32_UTIL),
    ("fp16_active_ratio", pynvml.NVML_GPM_METRIC_FP16_UTIL),
)
_Slots = bare(pynvml.c_nvmlGpmMetric_t) * len(METRICS)
_Request = bare(pynvml.c_nvmlGpmMetricsGet_t)
_FUNCTIONS = ("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet")


class Gpm:
    """Reads all `METRICS`; the first tick only takes the sample that the second is compared with."""

    def __init__(self, handle: Any, target: Values) -> None:
        self._handle = handle
        self._target = target
        self._retry_at = 0.0
        self._samples: list[Any] = []
        self._filled = False
        self.code = 0
        for key, _ in METRICS:
            target[key] = None
        if any(find_function(name) is None for name in _FUNCTIONS):
            self._retry_at = float("inf")

    def collect(self, now: float) -> bool:
        if now < self._retry_at:
            return False
        if not self._samples and not self._begin():
            return self._absent(now)
        older, newer = self._samples
        self.code = pynvml.nvmlLib.nvmlGpmSampleGet(self._handle, newer)
        if self.code:
            return self._absent(now)
        self._samples = [newer, older]
        self._filled, ready = True, self._filled
        return self._store(older, newer) if ready else False

    def _begin(self) -> bool:
        """Check that the card has GPM, and allocate two samples."""
        support = pynvml.c_nvmlGpmSupport_t()
        support.version = pynvml.NVML_GPM_SUPPORT_VERSION
        self.code = pynvml.nvmlLib.nvmlGpmQueryDeviceSupport(self._handle, ctypes.byref(support))
        if self.code or not support.isSupportedDevice:
            self.code = self.code or pynvml.NVML_ERROR_NOT_SUPPORTED
            return False
        for _ in range(2):
            sample = pynvml.c_nvmlGpmSample_t()
            self.code = pynvml.nvmlLib.nvmlGpmSampleAlloc(ctypes.byref(sample))
            if self.code:
                return False
            self._samples.append(sample)
        self._request = _Request()
        self._request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        self._request.numMetrics = len(METRICS)
        slots = _Slots.from_buffer(self._request, _Request.metrics.offset)
        for slot, (_, metric) in zip(slots, METRICS, strict=True):
            slot.metricId = metric
        self._slots = [(slot, key) for slot, (key, _) in zip(slots, METRICS, strict=True)]
        self._argument = ctypes.byref(self._request)
        return True

    def _store(self, older: Any, newer: Any) -> bool:
        self._request.sample1, self._request.sample2 = older, newer
        self.code = pynvml.nvmlLib.nvmlGpmMetricsGet(self._argument)
        for slot, key in self._slots:
            good = not self.code and slot.nvmlReturn == pynvml.NVML_SUCCESS
            value = slot.value
            self._target[key] = value / 100.0 if good and value == value else None
        check(self.code)
        return not self.code

    def _absent(self, now: float) -> bool:
        self.free()
        for key, _ in METRICS:
            self._target[key] = None
        check(self.code)
        self._retry_at = now + (RETRY_ABSENT if self.code in ABSENT_CODES else 10.0)
        return False

    def free(self) -> None:
        """Release the samples; only while the driver is up."""
        for sample in self._samples:
            if find_function("nvmlGpmSampleFree"):
                pynvml.nvmlLib.nvmlGpmSampleFree(sample)
        self._samples, self._filled = [], False

    def ask_again(self) -> None:
        self._retry_at = 0.0

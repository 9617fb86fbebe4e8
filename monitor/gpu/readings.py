"""The table of readings: which NVML call fills which field, in which unit, how often.

Adding a plain number takes one line here. `every_tick` is what changes within a second, `seldom` what changes
slowly or is only shown, `once` what never changes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pynvml
from msgspec import Struct, field

from monitor.gpu.calls import (
    UINT_NOT_AVAILABLE,
    Asked,
    FirstOf,
    Reading,
    Scalar,
    Values,
    bare,
    no_function,
)
from monitor.gpu.condition import Fabric, License, Vgpus, compute_mode, virtualization
from monitor.model.gpu import THROTTLE_REASONS

SELDOM = 5.0
"""Our choice: seconds between readings that rarely change."""
CLOCK = "nvmlDeviceGetClockInfo"
UtilizationRates = bare(pynvml.c_nvmlUtilization_t)
MemoryInfo = bare(pynvml.c_nvmlMemory_v2_t)


class Parts(Struct):
    """Where readings of one GPU are stored, by the snapshot structure they end up in."""

    gpu: Values = field(default_factory=dict)
    pcie: Values = field(default_factory=dict)
    nvlink: Values = field(default_factory=dict)
    errors: Values = field(default_factory=dict)
    activity: Values = field(default_factory=dict)
    throttle_times: Values = field(default_factory=dict)
    traffic: Values = field(default_factory=dict)
    """NVLink bytes by the card's own sum over all links, before `Traffic` decides whether to use it."""


def percent(value: int) -> float:
    return value / 100.0


def milli(value: int) -> float:
    return value / 1000.0


def mega(value: int) -> float:
    return value * 1e6


def number(value: int) -> int | None:
    return None if value == UINT_NOT_AVAILABLE else value


def pstate(value: int) -> int | None:
    return value if 0 <= value <= 15 else None


THROTTLE_BITS = tuple((reason, 1 << bit) for bit, reason in enumerate(THROTTLE_REASONS))
"""`THROTTLE_REASONS` follows the order of NVML's bits."""


@lru_cache(maxsize=64)
def throttle(bits: int) -> dict[str, bool]:
    return {reason: bool(bits & bit) for reason, bit in THROTTLE_BITS}


class Utilization(Asked):
    def __init__(self, handle: Any, target: Values) -> None:
        keys = ("utilization_ratio", "memory_utilization_ratio")
        super().__init__("nvmlDeviceGetUtilizationRates", target, keys)
        self._out = UtilizationRates()
        self.arguments = (handle, ctypes.byref(self._out))

    def store(self) -> None:
        self.target["utilization_ratio"] = self._out.gpu / 100.0
        self.target["memory_utilization_ratio"] = self._out.memory / 100.0


class Coder(Asked):
    """Encoder or decoder utilization; the second output is the driver's own sampling period. Few trainings
    use these: one that was idle is asked again after `SELDOM`."""

    def __init__(self, function: str, handle: Any, target: Values, key: str) -> None:
        super().__init__(function, target, (key,))
        self._out, self._period = ctypes.c_uint(), ctypes.c_uint()
        self._rests_until = 0.0
        self.arguments = (handle, ctypes.byref(self._out), ctypes.byref(self._period))

    def collect(self, now: float) -> bool:
        if now < self._rests_until:
            return False
        answered = super().collect(now)
        self._rests_until = now + SELDOM if answered and not self._out.value else 0.0
        return answered

    def store(self) -> None:
        self.target[self.keys[0]] = self._out.value / 100.0


class Memory(Asked):
    """Version 2 separates reserved from used memory."""

    def __init__(self, handle: Any, target: Values) -> None:
        keys = ("memory_used_bytes", "memory_total_bytes", "memory_reserved_bytes", "memory_free_bytes")
        super().__init__("nvmlDeviceGetMemoryInfo_v2", target, keys)
        self._out = MemoryInfo()
        self._out.version = pynvml.nvmlMemory_v2
        self.arguments = (handle, ctypes.byref(self._out))

    def store(self) -> None:
        self.target["memory_used_bytes"] = self._out.used
        self.target["memory_total_bytes"] = self._out.total
        self.target["memory_reserved_bytes"] = self._out.reserved
        self.target["memory_free_bytes"] = self._out.free


class OldMemory(Asked):
    """Before driver 510 "used" includes what the driver reserves, which is not reported separately."""

    def __init__(self, handle: Any, target: Values) -> None:
        keys = ("memory_used_bytes", "memory_total_bytes", "memory_free_bytes")
        super().__init__("nvmlDeviceGetMemoryInfo", target, keys)
        self._out = pynvml.c_nvmlMemory_t()
        self.arguments = (handle, ctypes.byref(self._out))

    def store(self) -> None:
        self.target["memory_used_bytes"] = self._out.used
        self.target["memory_total_bytes"] = self._out.total
        self.target["memory_free_bytes"] = self._out.free


class Temperature(Asked):
    def __init__(self, handle: Any, target: Values) -> None:
        super().__init__("nvmlDeviceGetTemperatureV", target, ("temperature_celsius",))
        structure: Any = getattr(pynvml, "c_nvmlTemperature_v1_t", ctypes.c_uint)
        self._out: Any = structure()
        if structure is ctypes.c_uint:
            self.function = no_function
            return
        self._out.version = pynvml.nvmlTemperature_v1
        self._out.sensorType = pynvml.NVML_TEMPERATURE_GPU
        self.arguments = (handle, ctypes.byref(self._out))

    def store(self) -> None:
        self.target["temperature_celsius"] = float(self._out.temperature)


class RemappedRows(Asked):
    def __init__(self, handle: Any, target: Values) -> None:
        keys = (
            "remapped_rows_corrected",
            "remapped_rows_uncorrected",
            "remapped_rows_pending",
            "remapped_rows_failed",
        )
        super().__init__("nvmlDeviceGetRemappedRows", target, keys)
        self._out = [ctypes.c_uint() for _ in keys]
        self.arguments = (handle, *(ctypes.byref(out) for out in self._out))

    def store(self) -> None:
        corrected, uncorrected, pending, failed = (out.value for out in self._out)
        self.target["remapped_rows_corrected"] = corrected
        self.target["remapped_rows_uncorrected"] = uncorrected
        self.target["remapped_rows_pending"] = bool(pending)
        self.target["remapped_rows_failed"] = bool(failed)


def every_tick(handle: Any, parts: Parts) -> list[Reading]:
    gpu = parts.gpu
    return [
        Utilization(handle, gpu),
        Coder("nvmlDeviceGetEncoderUtilization", handle, gpu, "encoder_utilization_ratio"),
        Coder("nvmlDeviceGetDecoderUtilization", handle, gpu, "decoder_utilization_ratio"),
        FirstOf(Memory(handle, gpu), OldMemory(handle, gpu)),
        Scalar("nvmlDeviceGetPowerUsage", handle, gpu, "power_watts", milli),
        FirstOf(
            Temperature(handle, gpu),
            Scalar("nvmlDeviceGetTemperature", handle, gpu, "temperature_celsius", float, 0),
        ),
        Scalar(CLOCK, handle, gpu, "sm_clock_hertz", mega, pynvml.NVML_CLOCK_SM),
        Scalar("nvmlDeviceGetPerformanceState", handle, gpu, "pstate", pstate),
        FirstOf(
            _wide("nvmlDeviceGetCurrentClocksEventReasons", handle, gpu, "throttle", throttle),
            _wide("nvmlDeviceGetCurrentClocksThrottleReasons", handle, gpu, "throttle", throttle),
        ),
        _wide("nvmlDeviceGetTotalEnergyConsumption", handle, gpu, "energy_joules", milli),
        Scalar("nvmlDeviceGetCurrPcieLinkGeneration", handle, parts.pcie, "generation", number),
    ]


def seldom(handle: Any, parts: Parts) -> list[Reading]:
    ecc, gpu = "nvmlDeviceGetTotalEccErrors", parts.gpu
    return [
        Scalar(CLOCK, handle, gpu, "memory_clock_hertz", mega, pynvml.NVML_CLOCK_MEM),
        Scalar(CLOCK, handle, gpu, "graphics_clock_hertz", mega, pynvml.NVML_CLOCK_GRAPHICS),
        Scalar(CLOCK, handle, gpu, "video_clock_hertz", mega, pynvml.NVML_CLOCK_VIDEO),
        Scalar("nvmlDeviceGetFanSpeed", handle, gpu, "fan_ratio", percent),
        Scalar("nvmlDeviceGetCurrPcieLinkWidth", handle, parts.pcie, "width", number),
        FirstOf(
            Scalar("nvmlDeviceGetEnforcedPowerLimit", handle, gpu, "power_limit_watts", milli),
            Scalar("nvmlDeviceGetPowerManagementLimit", handle, gpu, "power_limit_watts", milli),
        ),
        Scalar("nvmlDeviceGetPowerManagementDefaultLimit", handle, gpu, "power_default_watts", milli),
        compute_mode(handle, gpu),
        virtualization(handle, gpu),
        FirstOf(Fabric(handle, gpu, 3), Fabric(handle, gpu, 2)),
        License(handle, gpu),
        Vgpus(handle, gpu),
        Scalar("nvmlDeviceGetPcieReplayCounter", handle, parts.pcie, "replays", number),
        _wide(ecc, handle, parts.errors, "ecc_corrected_volatile", number, 0, 0),
        _wide(ecc, handle, parts.errors, "ecc_corrected_aggregate", number, 0, 1),
        _wide(ecc, handle, parts.errors, "ecc_uncorrected_volatile", number, 1, 0),
        _wide(ecc, handle, parts.errors, "ecc_uncorrected_aggregate", number, 1, 1),
        RemappedRows(handle, parts.errors),
    ]


def once(handle: Any, parts: Parts) -> list[Reading]:
    gpu = parts.gpu
    limit, clock = "nvmlDeviceGetTemperatureThreshold", "nvmlDeviceGetMaxClockInfo"
    return [
        Scalar(limit, handle, gpu, "temperature_shutdown_celsius", float, 0),
        Scalar(limit, handle, gpu, "temperature_slowdown_celsius", float, 1),
        Scalar(limit, handle, gpu, "memory_temperature_limit_celsius", float, 2),
        Scalar(clock, handle, gpu, "sm_clock_max_hertz", mega, pynvml.NVML_CLOCK_SM),
        Scalar(clock, handle, gpu, "memory_clock_max_hertz", mega, pynvml.NVML_CLOCK_MEM),
        Scalar("nvmlDeviceGetMaxPcieLinkGeneration", handle, parts.pcie, "generation_max", number),
        Scalar("nvmlDeviceGetMaxPcieLinkWidth", handle, parts.pcie, "width_max", number),
    ]


def _wide(
    function: str, handle: Any, target: Values, key: str, convert: Callable[[int], Any], *arguments: Any
) -> Scalar:
    return Scalar(function, handle, target, key, convert, *arguments, kind=ctypes.c_ulonglong)

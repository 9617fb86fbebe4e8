"""Readings that come as NVML "field values": many in one call, each with its own return code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pynvml
from msgspec import Struct

from monitor.gpu.calls import ABSENT_CODES, RETRY_ABSENT, Values, bare, check, find_function
from monitor.gpu.condition import RECOVERY_ACTIONS

ALL_LINKS = 0xFFFFFFFF
KIB = 1024
FieldValue = bare(pynvml.c_nvmlFieldValue_t)
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Which member of the value union holds the answer, by NVML's value type."""


class Rate:
    """A counter turned into a rate; None before the second reading and when the counter was reset."""

    def __init__(self, unit: float) -> None:
        self._unit = unit
        self._value: float | None = None
        self._time = 0.0

    def __call__(self, value: float, seconds: float) -> float | None:
        before, self._value = self._value, value
        elapsed, self._time = seconds - self._time, seconds
        if before is None or elapsed <= 0 or value < before:
            return None
        return (value - before) * self._unit / elapsed


class Counted(NamedTuple):
    """A counter and its rate."""

    total: int
    per_second: float | None


class Tally:
    """Converts a counter to its unit, and adds its rate."""

    def __init__(self, unit: float) -> None:
        self._unit = unit
        self._rate = Rate(unit)

    def __call__(self, value: float, seconds: float) -> Counted:
        return Counted(int(value * self._unit), self._rate(value, seconds))


class WideRate(Rate):
    """The rate of a counter that is only 32 bits wide on some cards: at PCIe speed it would wrap several
    times a tick unnoticed, so it counts only once it has proved to be wider."""

    def __call__(self, value: float, seconds: float) -> float | None:
        rate = super().__call__(value, seconds)
        return rate if value > 0xFFFFFFFF else None


class Field(Struct):
    """One field value: where it goes, and how the raw number and its time (seconds) are converted."""

    field: int
    target: Values
    key: str
    convert: Callable[[float, float], Any]
    scope: int = 0
    retry_at: float = 0.0


class FieldBatch:
    """Reads all its fields in one call; those the card does not know are left out for a while."""

    def __init__(self, handle: Any, fields: list[Field]) -> None:
        self._function = find_function("nvmlDeviceGetFieldValues")
        self._handle = handle
        self._fields = fields
        self.code = 0
        for field in fields:
            field.target.setdefault(field.key, None)
        self._prepare(-math.inf)

    def _prepare(self, now: float) -> None:
        self._asked = [field for field in self._fields if field.retry_at <= now or now == -math.inf]
        waiting = [field.retry_at for field in self._fields if field not in self._asked]
        self._prepare_at = min(waiting, default=math.inf)
        self._buffer = (FieldValue * max(1, len(self._asked)))()
        for slot, field in zip(self._buffer, self._asked, strict=False):
            slot.fieldId, slot.scopeId = field.field, field.scope
        self._pairs = list(zip(self._buffer, self._asked, strict=False))

    def collect(self, now: float) -> bool:
        if now >= self._prepare_at:
            self._prepare(now)
        if not self._asked or self._function is None:
            return False
        self.code = self._function(self._handle, len(self._asked), self._buffer)
        if self.code:
            return self._failed(now)
        return self._store(now)

    def _store(self, now: float) -> bool:
        absent = answered = False
        for slot, field in self._pairs:
            code = slot.nvmlReturn
            if code == pynvml.NVML_SUCCESS:
                answered = True
                stamp = slot.timestamp
                seconds = stamp / 1e6 if stamp > 0 else now
                raw = getattr(slot.value, _MEMBERS[slot.valueType])
                field.target[field.key] = field.convert(raw, seconds)
            else:
                field.target[field.key] = None
                field.retry_at = now + RETRY_ABSENT if code in ABSENT_CODES else now
                absent |= code in ABSENT_CODES
        if absent:
            self._prepare(now)
        return answered

    def _failed(self, now: float) -> bool:
        for field in self._asked:
            field.target[field.key] = None
            if self.code in ABSENT_CODES:
                field.retry_at = now + RETRY_ABSENT
        if self.code in ABSENT_CODES:
            self._prepare(now)
        check(self.code)
        return False

    def ask_again(self) -> None:
        for field in self._fields:
            field.retry_at = 0.0
        self._prepare(-math.inf)


def nano(value: float) -> float:
    return value / 1e9


def plain(kind: Callable[[float], Any]) -> Callable[[float, float], Any]:
    """For a field that needs no clock."""
    return lambda value, _seconds: kind(value)


def tick_fields(gpu: Values, pcie: Values, traffic: Values) -> list[Field]:
    """What changes within a second. PCIe counters exist only on new cards; they save the slow call."""
    return [
        Field(pynvml.NVML_FI_DEV_MEMORY_TEMP, gpu, "memory_temperature_celsius", plain(float)),
        Field(138, traffic, "transmit", Tally(KIB), ALL_LINKS),
        Field(139, traffic, "receive", Tally(KIB), ALL_LINKS),
        Field(197, pcie, "transmit_bytes_per_second", WideRate(1.0)),
        Field(198, pcie, "receive_bytes_per_second", WideRate(1.0)),
    ]


THROTTLE_TIMES = {
    "sw_power_cap": pynvml.NVML_FI_DEV_PERF_POLICY_POWER,
    "thermal": pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL,
    "sync_boost": pynvml.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST,
    "board_limit": pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT,
    "low_utilization": pynvml.NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION,
    "reliability": pynvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY,
    "sw_thermal_slowdown": 269,
    "hw_thermal_slowdown": 270,
    "hw_power_brake_slowdown": 271,
}
"""Reason → the field that counts its nanoseconds. Named like the throttle reasons where they coincide."""
RECOVERY_ACTION = 230


def seldom_fields(errors: Values, gpu: Values, throttle_times: Values) -> list[Field]:
    return [
        *(Field(field, throttle_times, reason, plain(nano)) for reason, field in THROTTLE_TIMES.items()),
        Field(RECOVERY_ACTION, gpu, "recovery_action", plain(lambda value: RECOVERY_ACTIONS.get(int(value)))),
        Field(pynvml.NVML_FI_DEV_RETIRED_SBE, errors, "retired_pages_single_bit", plain(int)),
        Field(pynvml.NVML_FI_DEV_RETIRED_DBE, errors, "retired_pages_double_bit", plain(int)),
        Field(pynvml.NVML_FI_DEV_RETIRED_PENDING, errors, "retired_pages_pending", plain(bool)),
    ]

"""NVLink: which links are up and what they could carry. Traffic comes with the field values."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml

from monitor.gpu.calls import ABSENT_CODES, RETRY_ABSENT, Values, check, find_function

MAX_LINKS = 36
SPEED_COMMON = 90
"""Field: MB/s of one link in one direction."""


class Links:
    """Counts the active links; a card without NVLink is asked again only now and then."""

    def __init__(self, handle: Any, target: Values) -> None:
        self._handle = handle
        self._target = target
        self._state = find_function("nvmlDeviceGetNvLinkState")
        self._speed = find_function("nvmlDeviceGetFieldValues")
        self._retry_at = 0.0
        self.code = 0
        target["links_active"] = target["bandwidth_bytes_per_second"] = None

    def collect(self, now: float) -> bool:
        if now < self._retry_at or self._state is None:
            return False
        active = self._count()
        self._target["links_active"] = active
        self._target["bandwidth_bytes_per_second"] = self._bandwidth(active) if active else None
        if active is None:
            self._retry_at = now + RETRY_ABSENT
        return active is not None

    def _count(self) -> int | None:
        """Links are numbered without gaps; the first one the card does not know ends them."""
        out, active = ctypes.c_uint(), 0
        for link in range(MAX_LINKS):
            self.code = self._state(self._handle, link, ctypes.byref(out)) if self._state else 13
            check(self.code)
            if self.code:
                break
            active += out.value == 1
        else:
            link = MAX_LINKS
        if self.code and self.code not in ABSENT_CODES:
            return None
        return active if link else None

    def _bandwidth(self, links: int) -> float | None:
        field = (pynvml.c_nvmlFieldValue_t * 1)()
        field[0].fieldId = SPEED_COMMON
        code = self._speed(self._handle, 1, field) if self._speed else pynvml.NVML_ERROR_NOT_SUPPORTED
        check(code)
        if code or field[0].nvmlReturn:
            return None
        wide = field[0].valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
        speed = field[0].value.ullVal if wide else field[0].value.uiVal
        return links * speed * 1e6 if speed else None

    def ask_again(self) -> None:
        self._retry_at = 0.0

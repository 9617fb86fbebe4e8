"""A machine without NVIDIA's library: until there is one, nothing that asks it is imported.

Those modules take a tenth of the time in which `gpumon run` starts.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from monitor.model.gpu import Source

if TYPE_CHECKING:
    from monitor.gpu.source import GpuReadings, GpuSource
    from monitor.model.clock import Moment
    from monitor.model.snapshot import Snapshot

LIBRARY = "libnvidia-ml.so.1"
NOT_FOUND = (
    "The NVML library (libnvidia-ml.so.1) was not found: install the NVIDIA driver, or start the container "
    "with its GPUs (docker run --gpus all)."
)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two looks for the library, doubled each time; also between two starts of a driver that
does not work."""


def has_library() -> bool:
    """Whether the library can be loaded; it is let go again, because an updated driver brings another one.
    Elsewhere than on Linux it has other names, which pynvml knows."""
    if sys.platform != "linux":
        return True
    import _ctypes

    try:
        loaded = ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    _ctypes.dlclose(loaded._handle)
    return True


class AwaitedSource:
    """Says that there is no library, and becomes the source that `make` makes once there is one."""

    def __init__(self, make: Callable[[], GpuSource]) -> None:
        self._make = make
        self._real: GpuSource | None = None
        self._pause = FIRST_PAUSE
        self._look_at = time.monotonic() + FIRST_PAUSE

    def read(self, now: Moment, previous: Snapshot | None) -> GpuReadings:
        if self._real is None and time.monotonic() >= self._look_at:
            self._look()
        if self._real is not None:
            return self._real.read(now, previous)
        from monitor.gpu.source import GpuReadings

        return GpuReadings(Source(kind="none", detail=NOT_FOUND))

    def _look(self) -> None:
        if has_library():
            self._real = self._make()
            return
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        self._look_at = time.monotonic() + self._pause

    def close(self) -> None:
        if self._real is not None:
            self._real.close()

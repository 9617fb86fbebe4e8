"""NVML, NVIDIA's management library, through `pynvml`."""

from __future__ import annotations

from typing import Literal

import pynvml

from monitor.clock import Moment
from monitor.gpu.source import GpuReadings
from monitor.snapshot import Snapshot, Source


class NvmlSource:
    """Says why there are no readings when the library does not answer."""

    def __init__(self, *, interval: float = 1.0, required: bool = False) -> None:
        self._required = required

    def read(self, now: Moment, previous: Snapshot | None) -> GpuReadings:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            kind: Literal["nvml", "none"] = "nvml" if self._required else "none"
            return GpuReadings(Source(kind=kind, ok=not self._required, detail=f"NVML: {error}."))
        return GpuReadings(Source(kind="nvml"))

    def close(self) -> None:
        return None

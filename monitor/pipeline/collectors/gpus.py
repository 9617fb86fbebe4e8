"""Every GPU, from NVML or the simulation."""

from __future__ import annotations

from monitor.gpu.source import open_source
from monitor.pipeline.draft import Draft, Setup


class GpuCollector:
    name = "gpu"

    def __init__(self, setup: Setup) -> None:
        chosen = setup.settings
        self._source = open_source(
            chosen.source, gpus=chosen.gpus, scenario=chosen.scenario, interval=chosen.interval
        )

    def collect(self, draft: Draft) -> None:
        readings = self._source.read(draft.now, draft.previous)
        draft.source, draft.gpus = readings.source, readings.gpus

    def close(self) -> None:
        self._source.close()

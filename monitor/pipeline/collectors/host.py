"""The machine: cores, memory, disks, network, pressure, limits."""

from __future__ import annotations

from monitor.host.reader import HostReader
from monitor.pipeline.draft import Draft, Setup


class HostCollector:
    name = "host"

    def __init__(self, setup: Setup) -> None:
        self._reader = HostReader()

    def collect(self, draft: Draft) -> None:
        draft.machine = self._reader
        draft.host = self._reader.read(draft.now)

    def close(self) -> None:
        self._reader.close()

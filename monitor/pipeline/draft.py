"""A snapshot under construction: what the collectors of this tick have delivered so far."""

from __future__ import annotations

import socket
from typing import Protocol

from msgspec import Struct, field

from monitor import __version__
from monitor.host.reader import HostReader
from monitor.model.clock import Moment
from monitor.model.gpu import Gpu, Source
from monitor.model.host import Host, Process
from monitor.model.owner import RingCount
from monitor.model.records import RecordSink
from monitor.model.run import Run
from monitor.model.settings import Settings
from monitor.model.snapshot import Snapshot
from monitor.runs.reader import RunReader

NO_SOURCE = Source("none", ok=False, detail="the GPU collector failed")


class Setup(Struct, frozen=True):
    """What a collector may be opened with."""

    settings: Settings
    sink: RecordSink | None = None
    """Where step records go in addition to the figures."""
    run: str | None = None
    """If set, only this run is read (`gpumon run` without a daemon)."""


class Draft(Struct):
    """Filled in by the collectors in order; a failed one leaves the value that means "unknown"."""

    now: Moment
    previous: Snapshot | None = None
    single: bool = False
    """Nobody will look a second time: what is there has to be read now."""
    host: Host = field(default_factory=lambda: Host(socket.gethostname()))
    source: Source = NO_SOURCE
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Process, ...] = ()
    runs: tuple[Run, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    ring_trouble: tuple[RingCount, ...] = ()
    rings: RunReader | None = None
    """The rings as read in this tick, for later collectors."""
    machine: HostReader | None = None

    def snapshot(self, interval: float) -> Snapshot:
        return Snapshot(
            seq=self.previous.seq + 1 if self.previous else 1,
            time=self.now.wall,
            monotonic=self.now.monotonic,
            interval_seconds=interval,
            source=self.source,
            host=self.host,
            gpus=self.gpus,
            processes=self.processes,
            runs=self.runs,
            dropped=dict(self.dropped),
            ring_trouble=self.ring_trouble,
            version=__version__,
        )


class Collector(Protocol):
    """One kind of reading. `collect` may raise: that costs only its own readings."""

    name: str

    def __init__(self, setup: Setup) -> None: ...

    def collect(self, draft: Draft) -> None: ...

    def close(self) -> None:
        """Close what was opened; safe to call twice."""

"""All host readings behind one object: `read` for the machine, `processes` for the training."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from monitor.host.procfs import Roots
from monitor.model.clock import Moment
from monitor.model.host import Host, Process

MAX_PROCESSES = 512
"""Our choice: 8 ranks with 32 workers each fit with room to spare."""

Processes = tuple[tuple[Process, ...], int]


class Backend(Protocol):
    """One way to read a machine."""

    def read(self, now: Moment) -> Host: ...

    def processes(
        self, now: Moment, trainers: Mapping[int, tuple[str, int]], gpu_pids: Collection[int]
    ) -> Processes: ...

    def close(self) -> None: ...


class HostReader:
    """Reads the machine. Rates need two reads: the first one leaves them None."""

    def __init__(self, roots: Roots | None = None, *, max_processes: int = MAX_PROCESSES) -> None:
        self._backend = open_backend(roots or Roots(), max_processes)

    def read(self, now: Moment) -> Host:
        return self._backend.read(now)

    def processes(
        self, now: Moment, trainers: Mapping[int, tuple[str, int]], gpu_pids: Collection[int]
    ) -> Processes:
        """Trainers (pid → run id and rank), all their descendants, and processes on GPUs; and how many of
        them the limit left out."""
        return self._backend.processes(now, trainers, gpu_pids)

    def close(self) -> None:
        self._backend.close()


def open_backend(roots: Roots, max_processes: int) -> Backend:
    """The kernel's own files where they exist; elsewhere psutil, which can do less."""
    if roots.available():
        from monitor.host.linux import LinuxHost

        return LinuxHost(roots, max_processes=max_processes)
    from monitor.host.portable import PortableHost

    return PortableHost(max_processes=max_processes)

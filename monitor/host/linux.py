"""Host readings on Linux, straight from the kernel's files."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Mapping

from monitor.host.cgroup import CgroupReader
from monitor.host.cpu import CpuReader
from monitor.host.disk import DiskReader
from monitor.host.memory import MemoryReader
from monitor.host.network import NetworkReader
from monitor.host.processes import ProcessReader
from monitor.host.procfs import HeldFile, Roots, read_text
from monitor.model.clock import Moment
from monitor.model.host import Host, Process

SHARED_MEMORY = "/dev/shm"


class LinuxHost:
    def __init__(self, roots: Roots, *, max_processes: int) -> None:
        self._loadavg = HeldFile(roots.proc / "loadavg", in_one_piece=True)
        self._cpu = CpuReader(roots)
        self._memory = MemoryReader(roots)
        self._disks = DiskReader(roots)
        self._networks = NetworkReader(roots)
        self._cgroups = CgroupReader(roots)
        self._processes = ProcessReader(roots, self._cgroups, limit=max_processes)
        self._membership = read_text(roots.proc / "self/cgroup")
        self._hostname = socket.gethostname()
        self._kernel = os.uname().release

    def read(self, now: Moment) -> Host:
        load, _ = parse_loadavg(self._loadavg.read(now.monotonic))
        cpu = self._cpu.read(now, load)
        return Host(
            hostname=self._hostname,
            kernel=self._kernel,
            boot_time=self._cpu.boot_time(now.monotonic),
            cpu=cpu,
            memory=self._memory.read(now.monotonic),
            disks=self._disks.read(now.monotonic),
            networks=self._networks.read(now.monotonic),
            io_pressure=self._disks.pressure(now.monotonic),
            cgroup=self._cgroups.read(self._membership, now.monotonic),
            shm_free_bytes=shm_free(SHARED_MEMORY),
        )

    def processes(
        self, now: Moment, trainers: Mapping[int, tuple[str, int]], gpu_pids: Collection[int]
    ) -> tuple[tuple[Process, ...], int]:
        """Trainers, all their descendants, and processes on GPUs; and how many the limit left out."""
        _, last_pid = parse_loadavg(self._loadavg.read(now.monotonic)) if trainers else (None, None)
        boot_time = self._cpu.boot_time(now.monotonic)
        return self._processes.read(now, trainers, gpu_pids, last_pid, boot_time)

    def close(self) -> None:
        for part in (self._loadavg, self._cpu, self._memory, self._disks, self._networks, self._processes):
            part.close()


def parse_loadavg(raw: bytes | None) -> tuple[tuple[float, float, float] | None, int | None]:
    """Load over 1, 5 and 15 minutes, and the last pid the kernel assigned."""
    fields = raw.split() if raw else []
    if len(fields) < 5:
        return None, None
    return (float(fields[0]), float(fields[1]), float(fields[2])), int(fields[4])


def shm_free(directory: str) -> int | None:
    """Free bytes of shared memory, through which DataLoader workers hand over their batches."""
    try:
        found = os.statvfs(directory)
    except (OSError, AttributeError):
        return None
    return found.f_bavail * found.f_frsize

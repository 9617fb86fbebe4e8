"""Training processes, their workers and the processes on GPUs: CPU, memory, threads and I/O.

Two small files per process and tick, through held descriptors; everything else about a process is read once
and refreshed only now and then.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from monitor.host.cgroup import CgroupReader
from monitor.host.identity import Identity, read_identity
from monitor.host.memory import PAGE_BYTES
from monitor.host.names import ContainerNames
from monitor.host.procfs import Every, Rates, Roots, read_bytes
from monitor.host.tree import ProcessTree
from monitor.model.clock import Moment
from monitor.model.host import Process

Role = Literal["trainer", "worker", "gpu", "other"]

HELD_PROCESSES = 128
"""Descriptors are held for this many processes (two each); for the others, files are opened every tick."""
IDENTITY_SECONDS = 60.0
"""Plus a few, depending on the pid, so that workers started together are not all due in the same tick."""
SETTLE_SECONDS = 5.0
"""A young process may still change its command (fork, then exec): read it again after this."""
HELPERS = ("multiprocessing.resource_tracker", "_inductor/compile_worker", "_inductor.compile_worker")
FORK_SERVER = "multiprocessing.forkserver"
LOADER_WORKER = "pt_data_worker"
"""What torch's DataLoader names its workers, however they were started."""
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class ProcessStat(NamedTuple):
    """What we need from ``/proc/PID/stat``; times in clock ticks."""

    name: str
    state: str
    parent: int
    cpu_ticks: int
    threads: int
    start_ticks: int
    rss_bytes: int
    blkio_ticks: int


def parse_process_stat(raw: bytes) -> ProcessStat:
    """The name is in brackets and may itself contain brackets and spaces, so count from the last bracket."""
    opening, closing = raw.find(b"("), raw.rfind(b")")
    fields = raw[closing + 2 :].split(None, 41)
    return ProcessStat(
        name=raw[opening + 1 : closing].decode("utf-8", "replace"),
        state=chr(fields[0][0]),
        parent=int(fields[1]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
        blkio_ticks=int(fields[39]) if len(fields) > 39 else 0,
    )


def parse_io(raw: bytes | None) -> tuple[int, int] | None:
    """Bytes actually read from and written to storage (not the page cache)."""
    fields = raw.split() if raw else []
    if len(fields) < 12 or fields[8] != b"read_bytes:" or fields[10] != b"write_bytes:":
        return None
    return int(fields[9]), int(fields[11])


class Tracked:
    """One process over time."""

    __slots__ = ("_io_fd", "_path", "_settled", "_stat_fd", "due", "identity", "pid", "rates", "start")

    def __init__(self, proc: str, pid: int, start: int, *, hold: bool) -> None:
        self.pid = pid
        self.start = start
        self.rates = Rates()
        self.identity: Identity | None = None
        self.due = Every(SETTLE_SECONDS)
        self._settled = False
        self._path = f"{proc}/{pid}"
        self._stat_fd = _open(f"{self._path}/stat") if hold else -1
        self._io_fd = _open(f"{self._path}/io") if hold else -1

    def read_stat(self) -> ProcessStat | None:
        """None if the process has gone, is a zombie, or its pid has been reused."""
        raw = _pread(self._stat_fd) if self._stat_fd >= 0 else read_bytes(f"{self._path}/stat")
        if not raw:
            return None
        stat = parse_process_stat(raw)
        return stat if stat.start_ticks == self.start and stat.state not in "ZX" else None

    def read_io(self) -> tuple[int, int] | None:
        if self._stat_fd >= 0:
            return parse_io(_pread(self._io_fd) if self._io_fd >= 0 else None)
        return parse_io(read_bytes(f"{self._path}/io"))

    def refresh_identity(self, now: float, parent: Identity | None, names: ContainerNames) -> Identity:
        if self.identity is None or self.due.due(now):
            if self.identity is not None and not self._settled:
                self._settled, self.due = True, Every(IDENTITY_SECONDS + self.pid % 16)
                self.due.due(now)
            self.identity = read_identity(Path(self._path), parent, names)
        return self.identity

    def close(self) -> None:
        for fd in (self._stat_fd, self._io_fd):
            if fd >= 0:
                os.close(fd)
        self._stat_fd = self._io_fd = -1


class ProcessReader:
    def __init__(self, roots: Roots, cgroups: CgroupReader, *, limit: int = 512) -> None:
        self._proc = str(roots.proc)
        self._cgroups = cgroups
        self._limit = limit
        self._names = ContainerNames(roots.proc.parent)
        self._tree = ProcessTree(roots.proc)
        self._tracked: dict[int, Tracked] = {}
        self._trainers: frozenset[int] = frozenset()
        self._delays = _delay_accounting(roots)

    def read(
        self,
        now: Moment,
        trainers: Mapping[int, tuple[str, int]],
        gpu_pids: Collection[int],
        last_pid: int | None,
        boot_time: float | None,
    ) -> tuple[tuple[Process, ...], int]:
        changed = frozenset(trainers) != self._trainers
        self._trainers = frozenset(trainers)
        if trainers:
            self._tree.refresh(now.monotonic, last_pid, at_once=changed)
        owners = self._tree.descendants(self._trainers) if trainers else {}
        wanted = _in_order(trainers, gpu_pids, owners)
        self._drop(self._tracked.keys() - set(wanted[: self._limit]))
        found = []
        for pid in wanted[: self._limit]:
            owner = owners.get(pid, pid)
            process = self._process(now, pid, trainers.get(owner), boot_time)
            if process is not None:
                found.append(process)
        return tuple(found), max(0, len(wanted) - self._limit)

    def _process(
        self, now: Moment, pid: int, run: tuple[str, int] | None, boot_time: float | None
    ) -> Process | None:
        tracked = self._tracked.get(pid) or self._track(pid)
        stat = tracked.read_stat() if tracked else None
        if tracked is None or stat is None:
            self._drop({pid})
            self._tree.forget(pid)
            return None
        above = self._tracked.get(stat.parent)
        identity = tracked.refresh_identity(now.monotonic, above.identity if above else None, self._names)
        return self._build(now.monotonic, tracked, stat, identity, run, boot_time)

    def _build(
        self,
        now: float,
        tracked: Tracked,
        stat: ProcessStat,
        identity: Identity,
        run: tuple[str, int] | None,
        boot_time: float | None,
    ) -> Process:
        rate = tracked.rates.per_second
        io = tracked.read_io()
        return Process(
            pid=tracked.pid,
            parent=stat.parent,
            role=self._role(tracked.pid, stat, identity, run),
            name=stat.name,
            command=identity.command,
            user=identity.user,
            owner_uid=identity.uid,
            cpu_ratio=rate("cpu", stat.cpu_ticks / TICKS, now),
            rss_bytes=stat.rss_bytes,
            threads=stat.threads,
            read_bytes_per_second=rate("read", io[0] if io else None, now),
            write_bytes_per_second=rate("write", io[1] if io else None, now),
            io_wait_ratio=rate("wait", self._delay(stat), now),
            started=None if boot_time is None else boot_time + stat.start_ticks / TICKS,
            container=identity.container,
            container_name=identity.container_name,
            pod=identity.pod,
            namespace=identity.namespace,
            slurm_job=identity.slurm_job,
            cgroup=self._cgroups.read(identity.membership, now),
            run=run[0] if run else None,
            rank=run[1] if run else None,
        )

    def _role(self, pid: int, stat: ProcessStat, identity: Identity, run: tuple[str, int] | None) -> Role:
        """Helpers that Python and the compiler start alongside the workers are "other"."""
        if pid in self._trainers:
            return "trainer"
        if run is None:
            return "gpu"
        if stat.name == LOADER_WORKER:
            return "worker"
        above = self._tracked.get(stat.parent)
        return "other" if is_helper(identity, above.identity if above else None) else "worker"

    def _delay(self, stat: ProcessStat) -> float | None:
        """Seconds spent waiting for block I/O; the kernel leaves the counter at 0 if accounting is off."""
        counted = self._delays or (self._delays is None and stat.blkio_ticks > 0)
        return stat.blkio_ticks / TICKS if counted else None

    def _track(self, pid: int) -> Tracked | None:
        raw = read_bytes(f"{self._proc}/{pid}/stat")
        if not raw:
            return None
        hold = len(self._tracked) < HELD_PROCESSES
        tracked = Tracked(self._proc, pid, parse_process_stat(raw).start_ticks, hold=hold)
        self._tracked[pid] = tracked
        return tracked

    def _drop(self, pids: Collection[int]) -> None:
        for pid in pids:
            tracked = self._tracked.pop(pid, None)
            if tracked is not None:
                tracked.close()

    def close(self) -> None:
        self._drop(list(self._tracked))


def is_helper(identity: Identity, parent: Identity | None) -> bool:
    """Multiprocessing's resource tracker and fork server, and the compiler's workers.

    The fork server's children keep its command line, and they *are* the workers: the fork server is the one
    whose parent is not a fork server.
    """
    command = identity.command or ""
    if any(mark in command for mark in HELPERS):
        return True
    above = parent.command or "" if parent else ""
    return FORK_SERVER in command and FORK_SERVER not in above


def _in_order(
    trainers: Mapping[int, tuple[str, int]], gpu_pids: Collection[int], owners: Mapping[int, int]
) -> list[int]:
    """Most important first, since the limit cuts the end; a parent comes before its children."""
    return list(dict.fromkeys([*trainers, *gpu_pids, *owners]))


def _delay_accounting(roots: Roots) -> bool | None:
    """Whether the kernel counts I/O delays; None: it does not say (before 5.14)."""
    raw = read_bytes(roots.proc / "sys/kernel/task_delayacct")
    return None if raw is None else raw.strip() == b"1"


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return -1


def _pread(fd: int) -> bytes | None:
    try:
        return os.pread(fd, 4096, 0)
    except OSError:
        return None

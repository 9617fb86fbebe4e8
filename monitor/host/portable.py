"""Host readings through psutil, for systems without ``/proc``. What psutil cannot provide stays None."""

from __future__ import annotations

import platform
import socket
from collections.abc import Collection, Mapping
from typing import Literal

import psutil

from monitor.host.procfs import Every, Rates
from monitor.model.clock import Moment
from monitor.model.host import Cpu, Disk, Host, Memory, Network, Process
from sdk.redact import redact

CHILDREN_SECONDS = 5.0
"""psutil reads every process on the machine to find children, so this is done rarely."""


class PortableHost:
    def __init__(self, *, max_processes: int) -> None:
        self._limit = max_processes
        self._rates = Rates()
        self._cpu_before: list[tuple[float, float]] = []
        self._look = Every(CHILDREN_SECONDS)
        self._trainers: frozenset[int] = frozenset()
        self._owners: dict[int, int] = {}
        self._known: dict[int, psutil.Process] = {}

    def read(self, now: Moment) -> Host:
        return Host(
            hostname=socket.gethostname(),
            kernel=platform.release() or None,
            boot_time=psutil.boot_time(),
            cpu=self._cpu(),
            memory=self._memory(now.monotonic),
            disks=self._disks(now.monotonic),
            networks=self._networks(now.monotonic),
        )

    def _cpu(self) -> Cpu:
        """All cores from one reading, so that the total and the cores cover the same interval."""
        cores = [(sum(times) - times.idle, sum(times)) for times in psutil.cpu_times(percpu=True)]
        before, self._cpu_before = self._cpu_before, cores
        spent = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, cores, strict=False)]
        whole = sum(total for _, total in spent)
        load = psutil.getloadavg()
        return Cpu(
            cores=psutil.cpu_count() or 1,
            utilization_ratio=_ratio(sum(busy for busy, _ in spent), whole),
            per_core_ratio=tuple(_ratio(*core) or 0.0 for core in spent) if whole > 0 else (),
            load_1m=load[0],
            load_5m=load[1],
            load_15m=load[2],
        )

    def _memory(self, now: float) -> Memory:
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        return Memory(
            total_bytes=memory.total,
            available_bytes=memory.available,
            used_bytes=memory.total - memory.available,
            cached_bytes=getattr(memory, "cached", None),
            shared_bytes=getattr(memory, "shared", None),
            swap_total_bytes=swap.total,
            swap_used_bytes=swap.used,
            swap_in_bytes_per_second=self._rates.per_second("swap in", swap.sin, now),
            swap_out_bytes_per_second=self._rates.per_second("swap out", swap.sout, now),
        )

    def _disks(self, now: float) -> tuple[Disk, ...]:
        rate = self._rates.per_second
        return tuple(
            Disk(
                name=name,
                read_bytes_per_second=rate(("read", name), disk.read_bytes, now),
                write_bytes_per_second=rate(("write", name), disk.write_bytes, now),
            )
            for name, disk in sorted((psutil.disk_io_counters(perdisk=True) or {}).items())
        )

    def _networks(self, now: float) -> tuple[Network, ...]:
        rate = self._rates.per_second
        return tuple(
            Network(
                name=name,
                receive_bytes_per_second=rate(("in", name), net.bytes_recv, now),
                transmit_bytes_per_second=rate(("out", name), net.bytes_sent, now),
            )
            for name, net in sorted((psutil.net_io_counters(pernic=True) or {}).items())
            if not name.startswith("lo")
        )

    def processes(
        self, now: Moment, trainers: Mapping[int, tuple[str, int]], gpu_pids: Collection[int]
    ) -> tuple[tuple[Process, ...], int]:
        self._find_children(now.monotonic, frozenset(trainers))
        wanted = list(dict.fromkeys([*trainers, *gpu_pids, *self._owners]))
        self._known = {pid: self._known[pid] for pid in wanted[: self._limit] if pid in self._known}
        found = []
        for pid in wanted[: self._limit]:
            run = trainers.get(self._owners.get(pid, pid))
            role: Literal["trainer", "worker", "gpu"] = "worker" if run else "gpu"
            process = self._process(now.monotonic, pid, "trainer" if pid in trainers else role, run)
            if process is not None:
                found.append(process)
        return tuple(found), max(0, len(wanted) - self._limit)

    def _find_children(self, now: float, trainers: frozenset[int]) -> None:
        if not self._look.due(now) and trainers == self._trainers:
            return
        self._trainers = trainers
        self._owners = {}
        for pid in trainers:
            try:
                children = psutil.Process(pid).children(recursive=True)
            except psutil.Error:
                continue
            self._owners.update({child.pid: pid for child in children if child.pid not in trainers})

    def _process(
        self,
        now: float,
        pid: int,
        role: Literal["trainer", "worker", "gpu"],
        run: tuple[str, int] | None,
    ) -> Process | None:
        try:
            process = self._known.get(pid) or psutil.Process(pid)
            if not process.is_running():  # gone, or the pid has a new owner
                self._known.pop(pid, None)
                return None
            self._known[pid] = process
            return self._build(now, process, role, run)
        except psutil.Error:
            return None

    def _build(
        self,
        now: float,
        process: psutil.Process,
        role: Literal["trainer", "worker", "gpu"],
        run: tuple[str, int] | None,
    ) -> Process:
        facts = process.as_dict(
            ["ppid", "name", "cmdline", "username", "cpu_times", "memory_info", "num_threads", "create_time"]
        )
        memory, times, started = facts["memory_info"], facts["cpu_times"], facts["create_time"]
        cpu = times.user + times.system if times else None
        return Process(
            pid=process.pid,
            parent=facts["ppid"],
            role=role,
            name=facts["name"],
            command=" ".join(redact(facts["cmdline"] or ())) or None,
            user=facts["username"],
            owner_uid=process.uids().effective if hasattr(process, "uids") else None,
            cpu_ratio=self._rates.per_second(("cpu", process.pid, started), cpu, now),
            rss_bytes=memory.rss if memory else None,
            threads=facts["num_threads"],
            started=started,
            run=run[0] if run else None,
            rank=run[1] if run else None,
        )

    def close(self) -> None:
        self._known.clear()


def _ratio(part: float, whole: float) -> float | None:
    return None if whole <= 0 else min(1.0, max(0.0, part / whole))

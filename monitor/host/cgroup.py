"""CPU quota and memory limit of a process's control group, for cgroup v1, v2 and hybrid set-ups.

A limit applies wherever it is set on the way up (for a pod, not only for its container), so every level is
checked, the tightest one counts, and throttling and use are read at that level.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from monitor.host.procfs import Every, Rates, Roots, counter, read_bytes, read_int, read_text
from monitor.model.host import Cgroup

LIMITS_SECONDS = 15.0
USE_SECONDS = 2.0
"""Our choices: limits rarely change; use is read every other tick."""
UNLIMITED_BYTES = 1 << 60
"""cgroup v1 expresses "no limit" as a number near 2^63."""
NO_LIMITS = Cgroup()


class Mount(NamedTuple):
    """Where a hierarchy is mounted, and which of its groups appears there as the top."""

    point: Path
    root: str


def parse_membership(text: str) -> dict[str, str]:
    """``/proc/PID/cgroup`` → controller → path; the v2 hierarchy has the empty name."""
    found = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            found[controller] = path
    return found


def parse_mounts(text: str) -> dict[str, Mount]:
    """``/proc/self/mountinfo`` → controller → mount; the v2 hierarchy has the empty name."""
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        mount = Mount(Path(fields[4]), fields[3])
        names = [""] if kind[0] == "cgroup2" else kind[2].split(",")
        for name in names:
            found.setdefault(name, mount)
    return found


def levels(mount: Mount, path: str) -> Iterator[Path]:
    """Directories of the group and its ancestors, as far up as the mount shows them."""
    inside = path
    if mount.root != "/" and (path == mount.root or path.startswith(mount.root + "/")):
        inside = path[len(mount.root) :]
    directory = mount.point / inside.strip("/")
    while True:
        if directory.is_dir():
            yield directory
        if directory == mount.point or mount.point not in directory.parents:
            return
        directory = directory.parent


class _Quota(NamedTuple):
    cores: float
    directory: Path


class _MemoryLevel(NamedTuple):
    limit: int | None
    directory: Path
    v2: bool


def _quota_v2(directory: Path) -> float | None:
    text = read_text(directory / "cpu.max")
    fields = text.split() if text else []
    if len(fields) != 2 or not fields[0].isdigit() or not int(fields[1]):
        return None
    return int(fields[0]) / int(fields[1])


def _quota_v1(directory: Path) -> float | None:
    quota, period = read_int(directory / "cpu.cfs_quota_us"), read_int(directory / "cpu.cfs_period_us")
    return quota / period if quota and quota > 0 and period else None


def find_quota(mounts: dict[str, Mount], groups: dict[str, str]) -> _Quota | None:
    """The tightest CPU quota on the way up."""
    found = []
    for name, read in (("cpu", _quota_v1), ("", _quota_v2)):
        if name in mounts and name in groups:
            for directory in levels(mounts[name], groups[name]):
                cores = read(directory)
                if cores is not None:
                    found.append(_Quota(cores, directory))
    return min(found, default=None)


def find_memory(mounts: dict[str, Mount], groups: dict[str, str]) -> _MemoryLevel | None:
    """The tightest memory limit on the way up; if there is none, the process's own group."""
    for name, file in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        if name not in mounts or name not in groups:
            continue
        limited, own = [], None
        for directory in levels(mounts[name], groups[name]):
            value = read_int(directory / file)
            if value is not None and value < UNLIMITED_BYTES:
                limited.append((value, directory))
            if own is None and directory != mounts[name].point:
                own = directory
        if limited:
            return _MemoryLevel(*min(limited), v2=name == "")
        if own is not None:
            return _MemoryLevel(None, own, v2=name == "")
    return None


def memory_use(level: _MemoryLevel) -> int | None:
    """What counts against the limit and cannot simply be dropped: use minus the inactive page cache."""
    name = "memory.current" if level.v2 else "memory.usage_in_bytes"
    used = read_int(level.directory / name)
    if used is None:
        return None
    stat = read_bytes(level.directory / "memory.stat")
    inactive = counter(stat, b"inactive_file" if level.v2 else b"total_inactive_file")
    return max(0, used - (inactive or 0))


class GroupReader:
    """One control group over time: limits are read rarely, use and throttling every other second."""

    def __init__(self, groups: dict[str, str]) -> None:
        self._groups = groups
        self._limits = Every(LIMITS_SECONDS)
        self._use = Every(USE_SECONDS)
        self._quota: _Quota | None = None
        self._memory: _MemoryLevel | None = None
        self._rates = Rates()
        self._value = NO_LIMITS

    def read(self, mounts: dict[str, Mount], now: float) -> Cgroup:
        if not self._use.due(now):
            return self._value
        if self._limits.due(now):
            self._quota = find_quota(mounts, self._groups)
            self._memory = find_memory(mounts, self._groups)
        self._value = Cgroup(
            cpu_quota_cores=self._quota.cores if self._quota else None,
            cpu_throttled_ratio=self._throttled(now),
            memory_limit_bytes=self._memory.limit if self._memory else None,
            memory_used_bytes=memory_use(self._memory) if self._memory else None,
        )
        return self._value

    def _throttled(self, now: float) -> float | None:
        """Share of the quota's periods in which the group was stopped; idle periods do not count."""
        if self._quota is None:
            return None
        stat = read_bytes(self._quota.directory / "cpu.stat")
        key = self._quota.directory
        periods = self._rates.per_second((key, "all"), counter(stat, b"nr_periods"), now)
        stopped = self._rates.per_second((key, "stopped"), counter(stat, b"nr_throttled"), now)
        if periods is None or stopped is None:
            return None
        return min(1.0, stopped / periods) if periods else 0.0


class CgroupReader:
    """All groups of interest, shared by the processes in them."""

    FORGET_SECONDS = 120.0

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._mounts: dict[str, Mount] = {}
        self._groups: dict[str, tuple[GroupReader, float]] = {}
        self._refresh = Every(60.0)

    def read(self, membership: str | None, now: float) -> Cgroup:
        """Limits for the text of a ``/proc/PID/cgroup``."""
        if membership is None:
            return NO_LIMITS
        if self._refresh.due(now):
            self._mounts = parse_mounts(read_text(self._roots.proc / "self/mountinfo") or "")
            self._forget(now)
        known = self._groups.get(membership)
        reader = known[0] if known else GroupReader(parse_membership(membership))
        self._groups[membership] = (reader, now)
        return reader.read(self._mounts, now)

    def _forget(self, now: float) -> None:
        for key, (_, seen) in list(self._groups.items()):
            if now - seen > self.FORGET_SECONDS:
                del self._groups[key]

"""Throughput and busy share of physical disks, from ``/proc/diskstats``.

Partitions, loop devices, RAID and device-mapper layers would count the same bytes twice, so only devices with
hardware (or a hypervisor) behind them are read.
"""

from __future__ import annotations

from typing import NamedTuple

from monitor.host.pressure import PressureReader
from monitor.host.procfs import Every, HeldFile, Rates, Roots, read_int
from monitor.model.host import Disk, Pressure
from sdk.patterns import later

SECTOR_BYTES = 512
"""The unit of the kernel's counters, regardless of the disk's own sector size."""
INVENTORY_SECONDS = 60.0
"""Our choice: disks are rarely added."""
_NOT_DISKS = later(r"(loop|ram|zram|dm-|md|sr|fd|nbd)\d")
_WHOLE_DISK = later(r"(sd[a-z]+|hd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+)$")

_VIRTUAL_DISK = later(r"x?vd[a-z]")


class DiskCounters(NamedTuple):
    read_bytes: int
    write_bytes: int
    busy_seconds: float


Parsed = tuple[str, DiskCounters]


def _parse(line: bytes) -> Parsed | None:
    fields = line.split()
    if len(fields) < 14:
        return None
    counters = DiskCounters(
        int(fields[5]) * SECTOR_BYTES, int(fields[9]) * SECTOR_BYTES, int(fields[12]) / 1e3
    )
    return fields[2].decode(), counters


class DiskStats:
    """The file's lines as last parsed: a second later most devices (loops, partitions, idle disks) have the
    same line, and only the others are parsed again."""

    def __init__(self) -> None:
        self._parsed: dict[bytes, Parsed | None] = {}

    def parse(self, raw: bytes) -> dict[str, DiskCounters]:
        """Device name → counters, for every line of the file."""
        before = self._parsed
        self._parsed = {line: before[line] if line in before else _parse(line) for line in raw.splitlines()}
        return dict(filter(None, self._parsed.values()))


class DiskReader:
    def __init__(self, roots: Roots) -> None:
        self._stats = HeldFile(roots.proc / "diskstats")
        self._lines = DiskStats()
        self._pressure = PressureReader(roots, "io")
        self._block = roots.sys / "block"
        self._inventory = Every(INVENTORY_SECONDS)
        self._disks: dict[str, bool | None] = {}
        self._known: set[str] = set()
        self._rates = Rates()

    def read(self, now: float) -> tuple[Disk, ...]:
        raw = self._stats.read(now)
        counters = self._lines.parse(raw) if raw else {}
        if counters.keys() != self._known or self._inventory.due(now):
            self._take_inventory(set(counters))
        return tuple(self._disk(name, counters[name], now) for name in self._disks)

    def pressure(self, now: float) -> Pressure:
        return self._pressure.read(now)

    def _disk(self, name: str, counters: DiskCounters, now: float) -> Disk:
        rate = self._rates.per_second
        busy = rate((name, "busy"), counters.busy_seconds, now)
        return Disk(
            name=name,
            read_bytes_per_second=rate((name, "read"), counters.read_bytes, now),
            write_bytes_per_second=rate((name, "write"), counters.write_bytes, now),
            busy_ratio=None if busy is None else min(1.0, busy),
            rotational=self._disks[name],
        )

    def _take_inventory(self, names: set[str]) -> None:
        self._known = names
        self._disks = {name: self._rotational(name) for name in sorted(names) if self._is_physical(name)}
        self._rates.keep({(name, kind) for name in self._disks for kind in ("read", "write", "busy")})

    def _is_physical(self, name: str) -> bool:
        if _NOT_DISKS.match(name):
            return False
        if self._block.is_dir():
            return (self._block / name / "device").exists()
        return bool(_WHOLE_DISK.match(name))

    def _rotational(self, name: str) -> bool | None:
        """A virtual disk claims to be rotational whatever lies beneath it, so that is unknown there."""
        if _VIRTUAL_DISK.match(name):
            return None
        value = read_int(self._block / name / "queue/rotational")
        return None if value is None else bool(value)

    def close(self) -> None:
        self._stats.close()
        self._pressure.close()

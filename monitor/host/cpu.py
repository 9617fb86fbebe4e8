"""CPU time of the machine, in total and per core, from ``/proc/stat``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from monitor.host.pressure import PressureReader
from monitor.host.procfs import Every, HeldFile, Roots, read_int
from monitor.model.clock import Moment
from monitor.model.host import Cpu

FREQUENCY_SECONDS = 15.0
"""Our choice: it takes one file per core, and the figure is only displayed."""
FREQUENCY_CORES = 8
"""The kernel may interrupt a core to read its frequency, so ask only a few, and rarely."""

Ticks = tuple[int, ...]
"""user, nice, system, idle, iowait, irq, softirq, steal"""


class Shares(NamedTuple):
    """What a core (or all of them) did between two readings, as shares of the time."""

    busy: float
    user: float
    system: float
    iowait: float
    steal: float


class CpuStat(NamedTuple):
    total: Ticks | None
    cores: dict[int, Ticks]
    boot_time: float | None


def parse_stat(raw: bytes) -> CpuStat:
    """The CPU lines and the boot time of ``/proc/stat``."""
    total: Ticks | None = None
    cores: dict[int, Ticks] = {}
    at = raw.find(b"\nbtime ")
    boot = float(raw[at + 7 :].split(None, 1)[0]) if at >= 0 else None
    for line in raw.splitlines():
        if not line.startswith(b"cpu"):
            break
        name, *fields = line.split()
        ticks = tuple(map(int, fields[:8]))
        if name == b"cpu":
            total = ticks
        else:
            cores[int(name[3:])] = ticks
    return CpuStat(total, cores, boot)


def shares(before: Sequence[int], after: Sequence[int]) -> Shares | None:
    """Shares between two readings. Some fields may go backwards a little (iowait does); that counts as 0."""
    spent = [max(0, b - a) for a, b in zip(before, after, strict=False)]
    spent += [0] * (8 - len(spent))
    total = sum(spent)
    if total <= 0:
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = spent
    return Shares(
        busy=(total - idle - iowait) / total,
        user=(user + nice) / total,
        system=(system + irq + softirq) / total,
        iowait=iowait / total,
        steal=steal / total,
    )


class CpuReader:
    def __init__(self, roots: Roots) -> None:
        self._stat = HeldFile(roots.proc / "stat", in_one_piece=True)
        self._pressure = PressureReader(roots, "cpu")
        self._frequency = _FrequencyReader(roots.sys / "devices/system/cpu")
        self._before: CpuStat | None = None
        self._boot_time: float | None = None

    def read(self, now: Moment, load: tuple[float, float, float] | None) -> Cpu | None:
        raw = self._stat.read(now.monotonic)
        if raw is None:
            return None
        stat, before = parse_stat(raw), self._before
        self._before = stat
        self._keep_boot_time(stat)
        total = shares(before.total, stat.total) if before and before.total and stat.total else None
        one, five, fifteen = load or (None, None, None)
        return Cpu(
            cores=len(stat.cores) or os.cpu_count() or 1,
            utilization_ratio=total.busy if total else None,
            per_core_ratio=_per_core(before, stat) if before else (),
            user_ratio=total.user if total else None,
            system_ratio=total.system if total else None,
            iowait_ratio=total.iowait if total else None,
            steal_ratio=total.steal if total else None,
            load_1m=one,
            load_5m=five,
            load_15m=fifteen,
            frequency_hertz=self._frequency.read(now.monotonic),
            pressure=self._pressure.read(now.monotonic),
        )

    def boot_time(self, now: float) -> float | None:
        if self._boot_time is None:
            raw = self._stat.read(now)
            if raw:
                self._keep_boot_time(parse_stat(raw))
        return self._boot_time

    def _keep_boot_time(self, stat: CpuStat) -> None:
        """The kernel recomputes it on each read and it jitters by a second: accept only real changes."""
        if stat.boot_time is None:
            return
        if self._boot_time is None or abs(stat.boot_time - self._boot_time) > 2:
            self._boot_time = stat.boot_time

    def close(self) -> None:
        self._stat.close()
        self._pressure.close()


def _per_core(before: CpuStat, after: CpuStat) -> tuple[float, ...]:
    """Use of each core by number; empty in the tick in which a core came or went."""
    if before.cores.keys() != after.cores.keys():
        return ()
    pairs = ((before.cores[core], ticks) for core, ticks in sorted(after.cores.items()))
    found = [shares(old, new) for old, new in pairs]
    return tuple(share.busy for share in found if share) if all(found) else ()


class _FrequencyReader:
    """The mean frequency of a few cores, cached for a while."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._period = Every(FREQUENCY_SECONDS)
        self._value: float | None = None

    def read(self, now: float) -> float | None:
        if self._period.due(now):
            count = os.cpu_count() or 1
            step = max(1, count // FREQUENCY_CORES)
            paths = (
                self._directory / f"cpu{core}/cpufreq/scaling_cur_freq" for core in range(0, count, step)
            )
            kilohertz = [value for path in paths if (value := read_int(path)) is not None]
            self._value = 1e3 * sum(kilohertz) / len(kilohertz) if kilohertz else None
        return self._value

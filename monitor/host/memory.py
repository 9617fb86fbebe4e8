"""Memory and swap of the machine, from ``/proc/meminfo`` and ``/proc/vmstat``."""

from __future__ import annotations

import os

from monitor.host.pressure import PressureReader
from monitor.host.procfs import HeldFile, Rates, Roots, counter
from monitor.model.host import Memory

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


NEEDED = tuple(b"MemTotal MemAvailable MemFree Buffers Cached SReclaimable Shmem SwapTotal SwapFree".split())


def parse_meminfo(raw: bytes) -> dict[bytes, int]:
    """Name → bytes, of those we need that are in kB; the file has fifty more, and is read every second."""
    found: dict[bytes, int] = {}
    text = b"\n" + raw + b"\n"
    for name in NEEDED:
        at = text.find(b"\n" + name + b":")
        value, _, unit = text[at + len(name) + 2 : text.find(b"\n", at + 1)].strip().partition(b" ")
        if at >= 0 and unit == b"kB" and value.isdigit():
            found[name] = int(value) * 1024
    return found


class MemoryReader:
    def __init__(self, roots: Roots) -> None:
        self._meminfo = HeldFile(roots.proc / "meminfo", in_one_piece=True)
        self._vmstat = HeldFile(roots.proc / "vmstat")
        self._pressure = PressureReader(roots, "memory")
        self._rates = Rates()

    def read(self, now: float) -> Memory | None:
        raw = self._meminfo.read(now)
        info = parse_meminfo(raw) if raw else {}
        total = info.get(b"MemTotal")
        if total is None:
            return None
        available = _available(info)
        swap_total, swap_free = info.get(b"SwapTotal"), info.get(b"SwapFree")
        swap_in, swap_out = self._swap_rates(now, swap_total)
        return Memory(
            total_bytes=total,
            available_bytes=available,
            used_bytes=max(0, total - available),
            cached_bytes=info[b"Cached"] + info.get(b"SReclaimable", 0) if b"Cached" in info else None,
            shared_bytes=info.get(b"Shmem"),
            swap_total_bytes=swap_total,
            swap_used_bytes=None if swap_total is None or swap_free is None else swap_total - swap_free,
            swap_in_bytes_per_second=swap_in,
            swap_out_bytes_per_second=swap_out,
            pressure=self._pressure.read(now),
        )

    def _swap_rates(self, now: float, swap_total: int | None) -> tuple[float | None, float | None]:
        """Only with swap: otherwise there is nothing to measure, and the file is long."""
        raw = self._vmstat.read(now) if swap_total else None
        counters = [counter(raw, name) for name in (b"pswpin", b"pswpout")]
        pages = [self._rates.per_second(at, value, now) for at, value in enumerate(counters)]
        swap_in, swap_out = (None if rate is None else rate * PAGE_BYTES for rate in pages)
        return swap_in, swap_out

    def close(self) -> None:
        for file in (self._meminfo, self._vmstat, self._pressure):
            file.close()


def _available(info: dict[bytes, int]) -> int:
    """What is available without swapping; kernels before 3.14 do not report it, so it is estimated there."""
    if b"MemAvailable" in info:
        return info[b"MemAvailable"]
    return sum(info.get(name, 0) for name in (b"MemFree", b"Buffers", b"Cached"))

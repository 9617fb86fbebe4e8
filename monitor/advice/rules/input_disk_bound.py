"""Samples wait for the disk.

Looks at: I/O wait and pressure of the host, bytes read, how much of making a sample is waiting rather
    than computing.
Why: A disk that is busy all the time gives the same bytes a second however many workers ask; rotating
    disks get slower with more.
Remedy: keep the data in memory or on a faster disk, read larger pieces, store it compressed or packed.
Gain: between no gain and the whole wait, by how busy the disk is.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, size
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change


@rule("input.disk_bound", suppresses=("input.bound", "input.too_few_workers", "input.no_workers"), bonus=0.3)
def check(run: RunContext) -> Advice | None:
    if not loading.starved(run):
        return None
    host = run.snapshot.host
    wait = max(
        [process.io_wait_ratio or 0.0 for process in run.processes if process.role in ("trainer", "worker")],
        default=0.0,
    )
    pressure = host.io_pressure.some_ratio or 0.0
    busy = max((disk.busy_ratio or 0.0 for disk in host.disks), default=0.0)
    waiting = max(wait, pressure, (host.cpu.iowait_ratio or 0.0) if host.cpu else 0.0)
    if waiting < run.policy.io_wait or max(busy, pressure) < 0.5:
        return None
    read = sum(process.read_bytes_per_second or 0.0 for process in run.processes)
    rotational = any(disk.rotational for disk in host.disks if (disk.busy_ratio or 0) > 0.5)
    left = 1.0 - 0.8 * min(1.0, waiting)
    return Advice(
        title=f"Disk-bound: the loader waits for storage ({percent(waiting)} I/O wait, {size(read)}/s read"
        + (", rotating disk)" if rotational else ")"),
        remedy="Keep the data set in memory (cache it after the first read), on a local SSD, or packed "
        "into large "
        "files read in order; more workers will not make the disk faster.",
        change="+ self.cache = {}\n  def __getitem__(self, i):\n+     if i in self.cache: return "
        "self.cache[i]",
        evidence={
            "io_wait_ratio": waiting,
            "disk_busy_ratio": busy,
            "read_bytes_per_second": read,
            "rotational": rotational,
            "data_share": loading.data_share(run),
        },
        what=Change(work_left=left),
        low=Change(work_left=(1 + left) / 2),
        high=Change(work_left=0.1),
        because=f"{percent(waiting)} of loading is waiting for storage",
    )

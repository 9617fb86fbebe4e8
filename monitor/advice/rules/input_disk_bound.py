"""Samples wait for the disk.

Looks at: bytes the run's own processes read from storage, how long they wait for it, I/O wait and pressure of
    the host. Other people's traffic on the disk is not evidence.
Why: A disk that is always busy delivers the same bytes per second however many workers ask; rotating disks
    even get slower with more.
Remedy: keep the data in memory or on a faster disk, read larger pieces, store it compressed or packed.
Gain: between no gain and the whole wait, depending on how busy the disk is.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import loading
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.host import Host

SAVED = 0.8
"""Share of the wait for storage that is saved if the data is in memory. Judgement."""
OWN_TRAFFIC = 0.5
"""Share of the busiest disk's traffic that must be the run's own reading. Judgement."""
LEAST_LEFT = 0.1
"""Share of loading that remains for the highest gain."""


@rule(
    "input.disk_bound",
    "Disk-bound",
    suppresses=("input.bound", "input.too_few_workers", "input.no_workers"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    read = sum(process.read_bytes_per_second or 0.0 for process in run.processes)
    if not loading.starved(run) or not read:
        return None
    host = run.snapshot.host
    wait = max(
        [process.io_wait_ratio or 0.0 for process in run.processes if process.role in ("trainer", "worker")],
        default=0.0,
    )
    pressure = host.io_pressure.some_ratio or 0.0
    busy = max((disk.busy_ratio or 0.0 for disk in host.disks), default=0.0)
    waiting = max(wait, pressure, (host.cpu.iowait_ratio or 0.0) if host.cpu else 0.0)
    if waiting < run.policy.io_wait or max(busy, pressure) < run.policy.disk_busy or not _is_ours(read, host):
        return None
    rotational = any(disk.rotational for disk in host.disks if (disk.busy_ratio or 0) > run.policy.disk_busy)
    left = 1.0 - SAVED * min(1.0, waiting)
    return Advice(
        title=f"Disk-bound: the loader waits for storage ({units.percent(waiting)} I/O wait, "
        f"{units.rate(read)} read" + (", rotating disk)" if rotational else ")"),
        remedy="Keep the data set in memory (cache it after the first read), on a local SSD, or packed "
        "into large files read in order; more workers will not make the disk faster.",
        effect="identical",
        price="memory or local disk for the samples that are kept",
        evidence={
            "io_wait_ratio": waiting,
            "disk_busy_ratio": busy,
            "read_bytes_per_second": read,
            "rotational": rotational,
            "data_share": loading.data_share(run),
        },
        gain=Bounds(low=(1.0 + left) / 2, likely=left, high=LEAST_LEFT).of(
            lambda share: Change(work_left=share)
        ),
        because=f"{units.percent(waiting)} of loading is waiting for storage",
    )


def _is_ours(read: float, host: Host) -> bool:
    """Whether the run itself keeps the busiest disk busy; data read over a network appears in no disk's
    counters."""
    traffic = [
        (disk.read_bytes_per_second or 0.0) + (disk.write_bytes_per_second or 0.0) for disk in host.disks
    ]
    return read >= OWN_TRAFFIC * max(traffic, default=0.0)

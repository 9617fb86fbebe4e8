"""Which readings of a snapshot go into history: (subject, field, value)."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from operator import attrgetter

from monitor.model.fair_share import fair_share
from monitor.model.gpu import Gpu
from monitor.model.host import Host
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot

GPU_FIELDS = (
    "utilization_ratio", "memory_used_bytes", "power_watts", "temperature_celsius", "sm_clock_hertz",
)  # fmt: skip
MAX_RUNS = 32
_gpu_values = attrgetter(*GPU_FIELDS)

Reading = tuple[str, str, float]
"""Subject, field, value."""


def readings(snapshot: Snapshot) -> list[Reading]:
    """Leaves out absent readings and NaN or infinity, which SQLite cannot store."""
    live = [run for run in snapshot.runs if run.state in ("running", "stalled")]
    parts = [
        *(_gpu(gpu) for gpu in snapshot.gpus if gpu.state == "ok"),
        _host(snapshot.host),
        *(_run(run) for run in fair_share(live, lambda run: run.owner_uid, MAX_RUNS)),
    ]
    return [
        (subject, field, float(value))
        for subject, fields in parts
        for field, value in fields
        if value is not None and isfinite(value)
    ]


Part = tuple[str, Iterable[tuple[str, float | None]]]
"""A subject and its fields."""


def _gpu(gpu: Gpu) -> Part:
    return f"gpu:{gpu.uuid}", zip(GPU_FIELDS, _gpu_values(gpu), strict=True)


def _host(host: Host) -> Part:
    found: list[tuple[str, float | None]] = []
    if host.cpu is not None:
        found.append(("cpu_utilization_ratio", host.cpu.utilization_ratio))
        found.append(("cpu_iowait_ratio", host.cpu.iowait_ratio))
    if host.memory is not None:
        found.append(("memory_used_bytes", host.memory.used_bytes))
        found.append(("swap_used_bytes", host.memory.swap_used_bytes))
    if host.disks:
        found.append(("disk_read_bytes_per_second", sum(d.read_bytes_per_second or 0.0 for d in host.disks)))
    return "host", found


def _run(run: Run) -> Part:
    return f"run:{run.id}", (
        ("samples_per_second", run.samples_per_second),
        ("iterations_per_second", run.iterations_per_second),
        ("step_p50_seconds", run.step.p50),
        ("starved_ratio", run.starved_ratio),
        ("loss", run.ranks[0].loss if run.ranks else None),
        *((f"phase_{phase.name}_ratio", phase.share) for phase in run.phases),
    )

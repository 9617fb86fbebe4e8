"""Which readings of a snapshot go into history: (subject, field, value)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from monitor.model.fair_share import fair_share
from monitor.model.gpu import Gpu
from monitor.model.host import Host
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot

GPU_FIELDS = (
    "utilization_ratio", "memory_used_bytes", "power_watts", "temperature_celsius", "sm_clock_hertz",
)  # fmt: skip
MAX_RUNS = 32


def readings(snapshot: Snapshot) -> Iterator[tuple[str, str, float]]:
    """Leaves out absent readings and NaN or infinity, which SQLite cannot store."""
    for subject, field, value in _all(snapshot):
        if value is not None and math.isfinite(value):
            yield subject, field, float(value)


def _all(snapshot: Snapshot) -> Iterator[tuple[str, str, float | None]]:
    for gpu in snapshot.gpus:
        if gpu.state == "ok":
            yield from _gpu(gpu)
    yield from _host(snapshot.host)
    live = [run for run in snapshot.runs if run.state in ("running", "stalled")]
    for run in fair_share(live, lambda run: run.owner_uid, MAX_RUNS):
        yield from _run(run)


def _gpu(gpu: Gpu) -> Iterator[tuple[str, str, float | None]]:
    for field in GPU_FIELDS:
        yield f"gpu:{gpu.uuid}", field, getattr(gpu, field)


def _host(host: Host) -> Iterator[tuple[str, str, float | None]]:
    if host.cpu is not None:
        yield "host", "cpu_utilization_ratio", host.cpu.utilization_ratio
        yield "host", "cpu_iowait_ratio", host.cpu.iowait_ratio
    if host.memory is not None:
        yield "host", "memory_used_bytes", host.memory.used_bytes
        yield "host", "swap_used_bytes", host.memory.swap_used_bytes
    if host.disks:
        yield "host", "disk_read_bytes_per_second", sum(d.read_bytes_per_second or 0.0 for d in host.disks)


def _run(run: Run) -> Iterator[tuple[str, str, float | None]]:
    subject = f"run:{run.id}"
    yield subject, "samples_per_second", run.samples_per_second
    yield subject, "iterations_per_second", run.iterations_per_second
    yield subject, "step_p50_seconds", run.step.p50
    yield subject, "starved_ratio", run.starved_ratio
    yield subject, "loss", run.ranks[0].loss if run.ranks else None
    for phase in run.phases:
        yield subject, f"phase_{phase.name}_ratio", phase.share

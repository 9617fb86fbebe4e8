"""Snapshots and runs for tests of history and comparison."""

from __future__ import annotations

from typing import Any

import msgspec

from monitor.snapshot import (
    Cpu,
    Finding,
    Gpu,
    Host,
    Phase,
    Rank,
    Remedy,
    Run,
    Snapshot,
    Source,
    Speedup,
    Times,
    Window,
)
from monitor.store.history import RunRecord


def run(
    id: str = "run-1", *, rate: float = 100.0, spread: float = 0.02, data: float = 0.5, **more: Any
) -> Run:
    """A run of 40 stretches of one second at `rate` samples/s, `data` of the time waiting for data."""
    wave = [1.0 + spread * (((at * 37) % 21) / 10 - 1.0) for at in range(40)]
    windows = tuple(
        Window(
            start=1000.0 + at,
            seconds=1.0,
            first_step=at * 10 + 1,
            steps=10,
            steps_seconds=1.0,
            samples_per_second=rate * factor,
            device_memory_bytes=1 << 30,
            gpu_utilization_ratio=0.4,
        )
        for at, factor in enumerate(wave)
    )
    phases = (Phase("data", data, data * 0.1), Phase("other", 1 - data, (1 - data) * 0.1))
    fields: dict[str, Any] = {
        "id": id, "name": "demo", "state": "ended", "started": 1000.0, "ended": 1040.0, "script": "train.py",
        "ranks": (Rank(0, "ended", 42, steps=400, samples=4000, device="cuda:0"),), "steps": 400,
        "batch_size": 32, "samples_per_second": rate, "iterations_per_second": 10.0, "timeline": windows,
        "phases": phases, "step": Times(count=400, mean=0.1, p50=0.1, p95=0.12),
        "config": {"model": {"class": "Net", "parameters": 10}, "loader": {"dataset_len": 1000}},
    }  # fmt: skip
    return Run(**{**fields, **more})


def finding(id: str, low: float, likely: float, high: float, run: str = "run-1") -> Finding:
    return Finding(
        id, "warning", f"{id} it is", run=run, remedy=Remedy("do"), speedup=Speedup(low, likely, high)
    )


def record(made: Run, *findings: Finding) -> RunRecord:
    return RunRecord(made, findings, 1040.0)


def snapshot(time: float, *runs: Run, findings: tuple[Finding, ...] = (), use: float = 0.5) -> Snapshot:
    return Snapshot(
        seq=1,
        time=time,
        monotonic=time,
        interval_seconds=1.0,
        source=Source("simulated"),
        host=Host("box", cpu=Cpu(2, use)),
        gpus=(Gpu(0, "GPU-1", utilization_ratio=use), Gpu(1, "GPU-2", state="lost", utilization_ratio=0.9)),
        runs=runs,
        findings=findings,
    )


def live(made: Run) -> Run:
    return msgspec.structs.replace(made, state="running", ended=None)

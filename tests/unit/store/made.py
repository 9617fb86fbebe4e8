"""Snapshots and runs for tests of history and comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from monitor.model import facts
from monitor.model.finding import Finding, Remedy, Speedup
from monitor.model.gpu import Gpu, Source
from monitor.model.history import RunRecord
from monitor.model.host import Cpu, Host
from monitor.model.run import Phase, Rank, Run, Times, Window
from monitor.model.snapshot import Snapshot


def run(
    id: str = "run-1", *, rate: float = 100.0, spread: float = 0.02, data: float = 0.5, **more: Any
) -> Run:
    """A run of 40 windows of one second at `rate` samples/s, `data` of the time waiting for data."""
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


def later(id: str = "run-2", **more: Any) -> Run:
    """The same again, after the first is over."""
    return run(id, **({"started": 2000.0, "ended": 2040.0} | more))


def workers(count: int, **loader: Any) -> dict[str, Any]:
    """A configuration with this many loader workers."""
    return {
        "model": {"class": "Net", "parameters": 10},
        "loader": {"dataset_len": 1000, "num_workers": count} | loader,
        "cpu_model": "Some CPU",
        "cpu_affinity": 2,
    }


def finding(
    id: str, low: float, likely: float, high: float, run: str = "run-1", settings: tuple[str, ...] = ()
) -> Finding:
    remedy = Remedy("do", settings=settings)
    return Finding(
        id, "warning", f"{id} it is", run=run, remedy=remedy, speedup=Speedup(low, likely, high), share=0.9
    )


def no_workers(low: float = 1.5, likely: float = 2.0, high: float = 2.5) -> Finding:
    """A finding whose remedy is a setting that the probe sees."""
    return finding("input.no_workers", low, likely, high, settings=("loader.num_workers",))


def record(made: Run, *findings: Finding) -> RunRecord:
    return RunRecord(made, findings, 1040.0)


def snapshot(time: float, *runs: Run, findings: tuple[Finding, ...] = (), use: float = 0.5) -> Snapshot:
    snapshot = Snapshot(
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
    return facts.join(snapshot)


def live(made: Run) -> Run:
    return msgspec.structs.replace(made, state="running", ended=None)


def file_bytes(path: Path) -> int:
    """Size of a database on disk, with its log."""
    return sum(part.stat().st_size for part in (path, Path(f"{path}-wal")) if part.exists())

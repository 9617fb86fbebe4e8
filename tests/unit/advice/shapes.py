"""Shapes of runs the rule cases share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitor.snapshot import (
    Cpu,
    Host,
    Memory,
    Run,
    Stall,
    Window,
)
from tests.unit.advice.build import (
    GIB,
    NOW,
    cuda_run,
    gpu_of,
    hot,
    loader,
    loader_config,
    rank_of,
    run_of,
)

STARVED = {"data": 0.02, "forward": 0.003, "backward": 0.005, "optimizer": 0.001}
LOADED = {
    "fetch_seconds": 0.018,
    "collate_seconds": 0.0005,
    "sampler_seconds": 0.0001,
    "getitem_seconds": 0.00056,
}
SCALER = hot("data", "x = self.scaler.transform(x)", function="Rows.__getitem__")


def starved(
    workers: int,
    hotspots: Sequence[dict[str, Any]] = (SCALER,),
    times: dict[str, Any] = LOADED,
    **loading: Any,
) -> Run:
    config = loader_config(workers, **loading) | {"hotspots": list(hotspots)}
    return run_of(STARVED, config=config, rank={"loader": loader(**times)})


def looped(code: str, phase: str = "between", seconds: float = 0.006, **values: Any) -> Run:
    phases = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}
    phases[phase] = phases.get(phase, 0.0) + seconds
    return run_of(phases, config={"hotspots": [hot(phase, code, **values)]})


def extra(phase: str, seconds: float = 0.006, **changes: Any) -> Run:
    return run_of({"data": 0.0004, "forward": 0.003, "backward": 0.005, phase: seconds}, **changes)


def stalled(kind: str, **values: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "count": 40,
        "total_seconds": 2.0,
        "share": 0.3,
        "every_steps": 10.0,
        "mean_seconds": 0.05,
    }
    return {"stalls": (Stall(kind=kind, **(plain | values)),)}


def timeline(growth: float, phase: str = "other") -> tuple[Window, ...]:
    windows = []
    for at in range(12):
        base, more = 0.01, 0.01 * growth * at / 11
        share = more / (base + more) + 0.1 * base / (base + more)
        windows.append(
            Window(
                NOW - 60 + at,
                1.0,
                at * 50,
                50,
                step_p50=base + more,
                phases={phase: share, "forward": 1 - share},
            )
        )
    return tuple(windows)


def host(**values: Any) -> Host:
    return Host(
        **({"hostname": "h", "cpu": Cpu(2, 0.5), "memory": Memory(24 * GIB, 16 * GIB, 8 * GIB)} | values)
    )


TWO_RANKS = (
    rank_of({"data": 0.001, "forward": 0.003, "backward": 0.012}),
    rank_of({"data": 0.008, "forward": 0.003, "backward": 0.005}, rank=1, pid=11),
)
EVEN_RANKS = (TWO_RANKS[0], rank_of({"data": 0.001, "forward": 0.003, "backward": 0.012}, rank=1, pid=11))
UNEVEN = (
    TWO_RANKS[0],
    rank_of({"data": 0.001, "forward": 0.003, "backward": 0.012}, rank=1, pid=11, samples=420 * 12),
)
HEALTHY = run_of()
CUDA = cuda_run()
TRANSFER = {"transfer": 0.004, "forward": 0.004, "backward": 0.006, "optimizer": 0.001}
ONE_GPU = {"gpus": (gpu_of(),)}

"""Shapes of runs shared by the rule cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitor.model.host import Cpu, Host, Memory
from monitor.model.run import Device, Run, Stall, Window
from tests.unit.advice.build import (
    GIB,
    NOW,
    cuda_run,
    gpu_of,
    hot,
    loader,
    loader_config,
    piece,
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
LAUNCH_BOUND = Device(
    busy_ratio=0.1,
    starved_ratio=0.9,
    bound="host",
    time={"forward": 0.004, "backward": 0.005, "optimizer": 0.001},
    idle={"forward": 0.0036, "backward": 0.0045, "optimizer": 0.0009},
    queue_empty={"forward": 1.0, "backward": 1.0, "optimizer": 1.0},
    kernels=900.0,
    syncs=0.0,
    sync_idle_seconds=0.0,
    copy_idle_seconds=0.0,
)
BUSY = Device(
    busy_ratio=0.98,
    starved_ratio=0.02,
    bound="device",
    time={"forward": 0.004, "backward": 0.005, "optimizer": 0.001},
    idle={"forward": 0.0002},
    queue_empty={"forward": 0.0, "backward": 0.0, "optimizer": 0.0},
    kernels=90.0,
    syncs=1.0,
    sync_idle_seconds=0.0002,
    copy_idle_seconds=0.0,
)
SCALER = hot("data", "x = self.scaler.transform(x)", function="Rows.__getitem__")


def starved(
    workers: int,
    hotspots: Sequence[dict[str, Any]] = (SCALER,),
    times: dict[str, Any] = LOADED,
    **loading: Any,
) -> Run:
    config = loader_config(workers, **loading) | {"hotspots": list(hotspots)}
    return run_of(STARVED, config=config, rank={"loader": loader(**times)})


def looped(
    code: str,
    phase: str = "between",
    seconds: float = 0.006,
    *,
    work: dict[str, Any] | None = None,
    **values: Any,
) -> Run:
    """A loop with one hot line; `work`: what the SDK says about that piece of work."""
    phases = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}
    phases[phase] = phases.get(phase, 0.0) + seconds
    config: dict[str, Any] = {"hotspots": [hot(phase, code, piece=["train.py", 7], **values)]}
    if work is not None:
        config["work"] = [
            piece(phase, code, **({"share": values["share"]} if "share" in values else {}), **work)
        ]
    return run_of(phases, config=config)


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
    memory = Memory(24 * GIB, 16 * GIB, 8 * GIB)
    plain: dict[str, Any] = {"hostname": "h", "cpu": Cpu(2, 0.5), "memory": memory}
    return Host(**(plain | values))


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

"""Snapshots for tests of the rules: a run with what matters given and everything else ordinary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from monitor.advice.engine import Engine
from monitor.model import facts
from monitor.model.finding import Finding
from monitor.model.gpu import Gpu, Source
from monitor.model.host import Cpu, Host, Memory, Process
from monitor.model.run import LoaderTimes, Phase, Rank, Run, Times
from monitor.model.snapshot import Snapshot

GIB = 1 << 30
NOW = 1_000_000.0
BALANCED = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}
CPU_CONFIG: dict[str, Any] = {
    "device": "cpu",
    "cpu_count": 2,
    "cpu_affinity": 2,
    "threads": {"torch": 2},
    "anomaly": False,
    "optimizer": {"class": "SGD", "kind": "SGD", "fused": True, "param_groups": 1},
    "model": {"dtype": "float32", "modules": 10, "parameters": 500_000},
}


def phases_of(seconds: Mapping[str, float]) -> tuple[Phase, ...]:
    total = sum(seconds.values()) or 1.0
    return tuple(Phase(name, value / total, value, value, value) for name, value in seconds.items())


def rank_of(seconds: Mapping[str, float], **changes: Any) -> Rank:
    period = sum(seconds.values())
    times = Times(count=400, mean=period, p50=period, p95=period * 1.1, max=period * 1.5)
    plain: dict[str, Any] = {
        "rank": 0,
        "state": "running",
        "pid": 10,
        "device": "cpu",
        "steps": 420,
        "samples": 420 * 32,
        "step": times,
        "whole": times,
        "phases": phases_of(seconds),
        "last_step_time": NOW,
    }
    return Rank(**(plain | changes))


def run_of(seconds: Mapping[str, float] | None = None, **changes: Any) -> Run:
    """`rank=` changes the rank; `config=` is merged over an ordinary CPU configuration."""
    config = _merged(CPU_CONFIG, changes.pop("config", {}))
    rank = rank_of(BALANCED if seconds is None else seconds, **changes.pop("rank", {}))
    plain: dict[str, Any] = {
        "id": "r",
        "name": "r",
        "state": "running",
        "started": NOW - 60,
        "first_step_time": NOW - 58,
        "ranks": (rank,),
        "config": config,
        "steps": rank.steps,
        "batch_size": 32,
        "phases": rank.phases,
        "step": rank.step,
        "pids": (rank.pid,),
    }
    return Run(**(plain | changes))


def snapshot_of(*runs: Run, **changes: Any) -> Snapshot:
    host = Host("h", cpu=Cpu(2, 0.5), memory=Memory(24 * GIB, 16 * GIB, 8 * GIB))
    plain: dict[str, Any] = {
        "seq": 1,
        "time": NOW,
        "monotonic": 50.0,
        "interval_seconds": 1.0,
        "source": Source("none"),
        "host": host,
        "runs": runs,
    }
    return facts.join(Snapshot(**(plain | changes)))


def loader(**values: Any) -> LoaderTimes:
    return LoaderTimes(batches=50, **values)


def loader_config(workers: int, **values: Any) -> dict[str, Any]:
    plain = {
        "num_workers": workers,
        "batch_size": 32,
        "dataset": "Rows",
        "dataset_len": 9000,
        "collate": "collate",
    }
    return {"loader": plain | values}


def hot(phase: str, code: str, share: float = 0.9, **values: Any) -> dict[str, Any]:
    plain = {"phase": phase, "function": "work", "file": "train.py", "line": 7, "code": code, "kind": "cpu"}
    return plain | {"share": share} | values


def piece(phase: str, code: str, share: float = 0.9, **values: Any) -> dict[str, Any]:
    """A piece of the loop's work as the SDK describes it; not needed by any step unless stated."""
    plain = {"phase": phase, "function": "train", "file": "train.py", "line": 7, "code": code, "needed": "no"}
    return plain | {"share": share, "steps": 12, "steps_seen": 12} | values


def gpu_of(**values: Any) -> Gpu:
    plain: dict[str, Any] = {
        "index": 0,
        "uuid": "GPU-a",
        "utilization_ratio": 0.85,
        "memory_used_bytes": 30 * GIB,
        "memory_total_bytes": 80 * GIB,
        "sm_clock_hertz": 1.9e9,
        "sm_clock_max_hertz": 1.98e9,
        "compute_capability": "9.0",
    }
    return Gpu(**(plain | values))


def cuda_run(seconds: Mapping[str, float] | None = None, **changes: Any) -> Run:
    config = _merged(
        {"device": "cuda:0", "precision": {"autocast": True}, "threads": {"torch": 1}},
        changes.pop("config", {}),
    )
    rank = {"device": "cuda:0", "gpu_uuid": "GPU-a"} | changes.pop("rank", {})
    return run_of(seconds, config=config, rank=rank, **({"gpu_uuids": ("GPU-a",)} | changes))


def trainer_process(**values: Any) -> Process:
    plain: dict[str, Any] = {"pid": 10, "role": "trainer", "run": "r", "rank": 0, "cpu_ratio": 1.0}
    return Process(**(plain | values))


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        result[key] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def called(function: str, line: int, code: str) -> dict[str, Any]:
    return {"function": function, "file": "train.py", "line": line, "code": code}


def findings(run: Run) -> tuple[Finding, ...]:
    """The findings once the run is over."""
    return Engine().evaluate(snapshot_of(msgspec.structs.replace(run, state="ended"))).findings


def first(run: Run) -> Finding:
    return findings(run)[0]

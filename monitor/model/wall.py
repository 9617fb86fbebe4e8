"""The whole machine in one line, for a wall display: what works, what hangs, what could be regained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from monitor.model.gpu import Gpu
from monitor.model.run import Run

WORKING = ("busy", "part_busy", "in_use", "throttled")
"""Conditions of a GPU that is computing something."""


class Wall(Struct, frozen=True):
    gpu_count: int = 0
    gpus_working: int = 0
    gpus_starved: int = 0
    """Waiting for work during a run."""
    gpus_lost: int = 0
    """Not answering."""
    gpus_to_gain: float | None = None
    """How many GPUs' worth of time the remedies of all live runs would free; None if nothing is predicted."""
    live_runs: int = 0
    runs_hung: int = 0
    runs_crashed: int = 0
    """Failed or killed, and not run again since."""


def wall_of(gpus: tuple[Gpu, ...], runs: tuple[Run, ...]) -> Wall:
    live = [run for run in runs if run.live]
    sharing = Counter(uuid for run in live for uuid in run.on_gpu_uuids)
    gains = [gain for run in live if (gain := _gain(run, sharing)) is not None]
    return Wall(
        gpu_count=len(gpus),
        gpus_working=sum(gpu.condition in WORKING for gpu in gpus),
        gpus_starved=sum(gpu.condition == "starved" for gpu in gpus),
        gpus_lost=sum(gpu.state != "ok" for gpu in gpus),
        gpus_to_gain=sum(gains) if gains else None,
        live_runs=len(live),
        runs_hung=sum(run.state == "stalled" for run in live),
        runs_crashed=sum(run.state in ("failed", "killed") and not run.superseded for run in runs),
    )


def _gain(run: Run, sharing: Mapping[str, int]) -> float | None:
    """A run on two GPUs that could be twice as fast wastes one of them; a shared GPU counts once."""
    if run.combined is None or not run.on_gpu_uuids:
        return None
    held = sum(1.0 / sharing[uuid] for uuid in run.on_gpu_uuids)
    return held * (1.0 - 1.0 / max(1.0, run.combined.likely))

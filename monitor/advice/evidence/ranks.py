"""Comparing the ranks of one run."""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.step_model import Change, saved
from monitor.model.run import Rank

WAITS = ("backward", "sync", "allreduce", "all_reduce", "collective", "comm")
"""Phases in which a rank may only be waiting for the others."""


def own_work(run: RunContext) -> dict[int, float]:
    """Rank → seconds per step of its own work. In phases that contain collectives, the minimum over the ranks
    counts as work, anything beyond it as waiting."""
    ranks = [rank for rank in run.run.ranks if rank.step.count >= run.policy.min_steps and rank.phases]
    if len(ranks) < 2:
        return {}
    if known_by_devices(run):
        return {rank.rank: _without_exchange(rank) for rank in ranks}
    common = {name: min(_seconds(rank, name) for rank in ranks) for name in WAITS}
    return {rank.rank: _work(rank, common) for rank in ranks}


def known_by_devices(run: RunContext) -> bool:
    """Whether every rank's device recorded how long the exchange ran alone: for a late rank perhaps not at
    all, but then for another."""
    alone = [rank.device_times.exchange_seconds for rank in run.run.ranks if rank.device_times.time]
    return len(alone) == len(run.run.ranks) and None not in alone and any(alone)


def without_wait(run: RunContext, cost: float) -> Change:
    """The step when nobody waits `cost` for a slow rank. On a GPU the others wait in a kernel of the
    exchange: it is the step that gets shorter, not a lane."""
    if run.has_cuda and run.period:
        return Change(everything=max(0.0, 1.0 - cost / run.period))
    return saved("*", cost, "straggler")


def _without_exchange(rank: Rank) -> float:
    """The exchange ends for all when the last rank arrives, so a late rank waits least in it."""
    device = rank.device_times
    return sum(device.time.values()) - (device.exchange_seconds or 0.0)


def _work(rank: Rank, common: dict[str, float]) -> float:
    return sum(
        min(phase.mean_seconds, common[phase.name]) if phase.name in common else phase.mean_seconds
        for phase in rank.phases
    )


def widest_phase(run: RunContext, slowest: int) -> tuple[str, float]:
    """The phase in which the slowest rank deviates most from the others' median, and by how much."""
    times = {rank.rank: _times(rank, known_by_devices(run)) for rank in run.run.ranks if rank.phases}
    slow = times.pop(slowest)
    extra: dict[str, float] = {}
    for phase, seconds in slow.items():
        usual = sorted(others.get(phase, 0.0) for others in times.values())
        extra[phase] = seconds - (usual[len(usual) // 2] if usual else 0.0)
    name = max(extra, key=lambda phase: extra[phase])
    return name, max(0.0, extra[name])


def _times(rank: Rank, by_device: bool) -> dict[str, float]:
    if by_device:
        return dict(rank.device_times.time)
    return {phase.name: phase.mean_seconds for phase in rank.phases}


def _seconds(rank: Rank, name: str) -> float:
    return next((phase.mean_seconds for phase in rank.phases if phase.name == name), 0.0)

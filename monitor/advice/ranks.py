"""Ranks of one run against each other."""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.snapshot import Rank

WAITS = ("backward", "sync", "allreduce", "all_reduce", "collective", "comm")
"""Phases in which a rank may simply be waiting for the others."""


def own_work(run: RunContext) -> dict[int, float]:
    """Rank → seconds a step of work of its own. What all ranks have in common in phases that contain
    collectives is work; what a rank has beyond the least of them there is waiting."""
    ranks = [rank for rank in run.run.ranks if rank.step.count >= run.policy.min_steps and rank.phases]
    if len(ranks) < 2:
        return {}
    common = {name: min(_seconds(rank, name) for rank in ranks) for name in WAITS}
    return {rank.rank: _work(rank, common) for rank in ranks}


def _work(rank: Rank, common: dict[str, float]) -> float:
    return sum(
        min(phase.mean_seconds, common[phase.name]) if phase.name in common else phase.mean_seconds
        for phase in rank.phases
    )


def widest_phase(run: RunContext, slowest: int) -> tuple[str, float]:
    """The phase in which the slowest rank differs most from the others' median, and by how much."""
    slow = next(rank for rank in run.run.ranks if rank.rank == slowest and rank.phases)
    others = [rank for rank in run.run.ranks if rank.rank != slowest and rank.phases]
    extra: dict[str, float] = {}
    for phase in slow.phases:
        usual = sorted(_seconds(rank, phase.name) for rank in others)
        extra[phase.name] = phase.mean_seconds - (usual[len(usual) // 2] if usual else 0.0)
    name = max(extra, key=lambda phase: extra[phase])
    return name, max(0.0, extra[name])


def _seconds(rank: Rank, name: str) -> float:
    return next((phase.mean_seconds for phase in rank.phases if phase.name == name), 0.0)

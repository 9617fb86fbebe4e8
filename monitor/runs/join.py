"""Ranks into runs, and runs with their GPUs and processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.clock import Moment
from monitor.runs.follow import Follower
from monitor.runs.gpus import gpu_of, visible_gpus
from monitor.runs.ranks import make_rank
from monitor.runs.workers import merged_hotspots
from monitor.snapshot import Gpu, Process, Rank, Run, RunState


def group(followers: Sequence[Follower]) -> list[tuple[list[Follower], list[Follower]]]:
    """(trainers by rank, their workers) of each run. A run id is only shared by rings of one owner.

    When a rank has several rings (a restarted rank of an elastic job), the newest counts.
    """
    trainers: dict[tuple[str, int], dict[int, Follower]] = {}
    workers: dict[tuple[str, int], list[Follower]] = {}
    for follower in followers:
        key = (follower.meta.run, follower.found.owner)
        if follower.is_worker:
            workers.setdefault(key, []).append(follower)
            continue
        ranks = trainers.setdefault(key, {})
        other = ranks.get(follower.meta.rank)
        if other is None or other.header.started_wall_ns <= follower.header.started_wall_ns:
            ranks[follower.meta.rank] = follower
    return [
        ([ranks[rank] for rank in sorted(ranks)], workers.get(key, []))
        for key, ranks in sorted(trainers.items())
    ]


def make_run(
    trainers: Sequence[Follower],
    workers: Sequence[Follower],
    now: Moment,
    gpus: Sequence[Gpu],
    processes: Sequence[Process],
) -> Run:
    """One run from its rings; figures of the whole run are those of its first rank."""
    by_pid = {process.pid: process for process in processes}
    ranks = tuple(_rank(trainer, workers, now, gpus, by_pid) for trainer in trainers)
    lead, first, meta = trainers[0], ranks[0], trainers[0].meta
    figures = lead.figures
    assert figures is not None
    state = run_state([rank.state for rank in ranks])
    live = state in ("running", "stalled")
    return Run(
        id=meta.run,
        name=meta.name,
        state=state,
        started=min(trainer.header.started_wall_ns for trainer in trainers) / 1e9,
        ended=None if live else max((t.ended_wall or now.wall for t in trainers), default=now.wall),
        ranks=ranks,
        world_size=max(meta.world, len(ranks)),
        first_step_time=_first_step_time(trainers),
        command=meta.text("command"),
        script=meta.text("script"),
        user=meta.text("user"),
        hostname=meta.text("host"),
        container=meta.text("container") or _of_process(by_pid, lead, "container"),
        pod=meta.text("pod") or _of_process(by_pid, lead, "pod"),
        slurm_job=meta.text("slurm_job"),
        git_commit=meta.text("git_commit"),
        sdk_version=meta.text("sdk_version"),
        way=meta.text("way"),
        config=_config(lead, workers),
        steps=max(rank.steps for rank in ranks),
        lost=sum(rank.lost for rank in ranks),
        batch_size=meta.batch_size,
        iterations_per_second=_least([rank.iterations_per_second for rank in ranks]),
        samples_per_second=_sum([rank.samples_per_second for rank in ranks]),
        tokens_per_second=_sum([rank.tokens_per_second for rank in ranks]),
        step=first.step,
        phases=first.phases,
        starved_ratio=_mean([rank.device_times.starved_ratio for rank in ranks]),
        trend_ratio=figures.timeline.trend(),
        stalls=first.stalls,
        timeline=figures.timeline.windows(lead.identity.wall_offset_ns),
        gpu_uuids=tuple(dict.fromkeys(rank.gpu_uuid for rank in ranks if rank.gpu_uuid)),
        visible_gpu_uuids=visible_gpus(lead.config, first.device, gpus),
        pids=_pids(trainers, processes),
    )


def _rank(
    trainer: Follower,
    workers: Sequence[Follower],
    now: Moment,
    gpus: Sequence[Gpu],
    by_pid: Mapping[int, Process],
) -> Rank:
    own = [worker for worker in workers if worker.meta.rank == trainer.meta.rank]
    gpu = gpu_of(trainer.meta, trainer.config, trainer.host_pid, gpus)
    rank = make_rank(trainer, own, now, gpu.uuid if gpu else None)
    if trainer.figures is not None and trainer.alive:
        process = by_pid.get(trainer.host_pid)
        readings: dict[str, float | None] = {
            "rss_bytes": _rss(trainer, process),
            "device_memory_bytes": trainer.scalars.get("cuda.allocated_bytes"),
        }
        if gpu is not None and gpu.state == "ok":
            readings["gpu_utilization_ratio"] = gpu.utilization_ratio
            readings["sm_clock_hertz"] = gpu.sm_clock_hertz
        trainer.figures.timeline.gauge(int(now.monotonic * 1e9), readings)
    return rank


def _rss(trainer: Follower, process: Process | None) -> float | None:
    if process is not None and process.rss_bytes is not None:
        return float(process.rss_bytes)
    return trainer.scalars.get("proc.rss_bytes")


def run_state(ranks: Sequence[RunState]) -> RunState:
    """Live while any rank is; a run without live ranks is what went worst."""
    worst: tuple[RunState, ...] = ("stalled", "running", "killed", "failed")
    for state in worst:
        if state in ranks:
            return state
    return "ended"


def _first_step_time(trainers: Sequence[Follower]) -> float | None:
    begins = [
        (trainer.counters.first_begin_ns + trainer.identity.wall_offset_ns) / 1e9
        for trainer in trainers
        if trainer.counters.first_begin_ns is not None
    ]
    return min(begins, default=None)


def _config(lead: Follower, workers: Sequence[Follower]) -> dict[str, Any]:
    spots = merged_hotspots(
        lead.config.get("hotspots"), [worker.config for worker in workers if worker.config.get("hotspots")]
    )
    return {**lead.config, "hotspots": spots} if spots else lead.config


def _pids(trainers: Sequence[Follower], processes: Sequence[Process]) -> tuple[int, ...]:
    """Host pids of the live ranks and of their children."""
    run = trainers[0].meta.run
    own = [trainer.host_pid for trainer in trainers if trainer.alive]
    children = [process.pid for process in processes if process.run == run]
    return tuple(dict.fromkeys(own + children)) if own else ()


def _of_process(by_pid: Mapping[int, Process], lead: Follower, field: str) -> str | None:
    process = by_pid.get(lead.host_pid) if lead.alive else None
    return getattr(process, field) if process is not None else None


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _least(values: Sequence[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)

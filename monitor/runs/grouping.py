"""Combines ranks into runs, and runs with their GPUs and processes."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from monitor.model.clock import Moment
from monitor.model.gpu import Gpu
from monitor.model.host import Process
from monitor.model.owner import user_name
from monitor.model.run import Rank, Run, RunState
from monitor.runs.criticality import criticality
from monitor.runs.follow import Follower
from monitor.runs.gpus import gpu_of, visible_gpus
from monitor.runs.liveness import UNSEEN
from monitor.runs.ranks import make_rank
from monitor.runs.timeline import Timeline
from monitor.runs.workers import merged_hotspots
from sdk import ring
from sdk.redact import redact_text

RunKey = tuple[int, str]
"""The owner of the files, and the id they claim."""


class Group(Struct, frozen=True):
    """The rings of one run."""

    key: RunKey
    trainers: list[Follower]
    """By rank; at least one. If a rank has several rings (a restarted rank of an elastic job), the newest
    counts."""
    workers: list[Follower]
    older: list[Follower]
    """Rings of ranks that have a newer one."""

    @property
    def is_over(self) -> bool:
        return not any(trainer.alive for trainer in self.trainers)

    @property
    def followers(self) -> list[Follower]:
        return [*self.trainers, *self.workers, *self.older]


def group(followers: Sequence[Follower]) -> tuple[list[Group], list[Follower]]:
    """Rings as runs, and the workers that belong to none. Only rings of one owner can share a run."""
    rings: dict[RunKey, list[Follower]] = {}
    for follower in followers:
        rings.setdefault(follower.run, []).append(follower)
    groups, orphans = [], []
    for key, own in sorted(rings.items()):
        workers = [one for one in own if one.is_worker]
        newest: dict[int, Follower] = {}
        for one in sorted(own, key=lambda one: one.header.started_wall_ns):
            if not one.is_worker:
                newest[one.meta.rank] = one
        older = [one for one in own if not one.is_worker and newest[one.meta.rank] is not one]
        if newest:
            groups.append(Group(key, [newest[rank] for rank in sorted(newest)], workers, older))
        else:
            orphans += workers
    return groups, orphans


def make_run(
    rings: Group,
    now: Moment,
    gpus: Sequence[Gpu],
    processes: Sequence[Process],
    before: Sequence[Rank] = (),
) -> Run:
    """One run from its rings; whole-run figures are those of its first rank. `before`: ranks whose rings were
    released when the run seemed to be over."""
    trainers, workers = rings.trainers, rings.workers
    by_pid = {process.pid: process for process in processes}
    made = {one.meta.rank: _rank(one, workers, now, gpus, by_pid) for one in trainers}
    lead, meta = trainers[0], trainers[0].meta
    first = made[meta.rank]
    together = {rank.rank: rank for rank in before} | made
    ranks = tuple(together[rank] for rank in sorted(together))
    timeline = _timeline(trainers)
    state = run_state([rank.state for rank in ranks])
    live = state in ("running", "stalled")
    return Run(
        id=lead.identity.run,
        name=meta.name,
        state=state,
        started=min(trainer.started_wall for trainer in trainers),
        ended=None if live else max((t.ended_wall or now.wall for t in trainers), default=now.wall),
        ranks=ranks,
        world_size=max(meta.world, len(ranks)),
        first_step_time=_first_step_time(trainers),
        command=_without_secrets(meta.text("command")),
        script=meta.text("script"),
        user=user_name(lead.owner),
        owner_uid=lead.owner,
        claimed_id=meta.run,
        hostname=meta.text("host"),
        container=meta.text("container") or _of_process(by_pid, lead, "container"),
        pod=meta.text("pod") or _of_process(by_pid, lead, "pod"),
        namespace=_of_process(by_pid, lead, "namespace"),
        slurm_job=meta.text("slurm_job") or _of_process(by_pid, lead, "slurm_job"),
        git_commit=meta.text("git_commit"),
        sdk_version=meta.text("sdk_version"),
        way=meta.text("way"),
        framework=meta.text("framework"),
        error=next((text for trainer in trainers if (text := _error(trainer))), None),
        interrupted=any(trainer.header.state == ring.S_INTERRUPTED for trainer in trainers),
        config=_config(lead, workers),
        steps=max(rank.steps for rank in ranks),
        lost=sum(rank.lost for rank in ranks),
        batch_size=meta.batch_size,
        iterations_per_second=_least([rank.iterations_per_second for rank in ranks]),
        micro_batches=first.micro_batches,
        micro_batches_per_second=_least([rank.micro_batches_per_second for rank in ranks]),
        samples_per_second=_sum([rank.samples_per_second for rank in ranks]),
        tokens_per_second=_sum([rank.tokens_per_second for rank in ranks]),
        step=first.step,
        phases=first.phases,
        starved_ratio=_mean([rank.device_times.starved_ratio for rank in ranks]),
        trend_ratio=timeline.trend(),
        stalls=first.stalls,
        criticality=criticality(meta.delays, first.steps),
        timeline=timeline.windows(lead.identity.wall_offset_ns),
        gpu_uuids=tuple(dict.fromkeys(rank.gpu_uuid for rank in ranks if rank.gpu_uuid)),
        visible_gpu_uuids=visible_gpus(lead.config, first.device, gpus),
        pids=_pids(trainers, processes),
    )


def _error(trainer: Follower) -> str | None:
    """The exception that ended it, or the signal ("SIGSEGV")."""
    number = trainer.header.signal
    known = trainer.state() == "killed" and number in signal.valid_signals()
    return trainer.meta.text("error") or (_signal_name(number) if known else None)


def _signal_name(number: int) -> str:
    """Real-time signals have no names of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _timeline(trainers: Sequence[Follower]) -> Timeline:
    """The first rank's. The others' would never be shown, yet take most of the memory of a run with many
    ranks."""
    for at, trainer in enumerate(trainers):
        if trainer.figures is not None:
            trainer.figures.keep_timeline(at == 0)
    assert trainers[0].figures is not None and trainers[0].figures.timeline is not None
    return trainers[0].figures.timeline


def _rank(
    trainer: Follower,
    workers: Sequence[Follower],
    now: Moment,
    gpus: Sequence[Gpu],
    by_pid: Mapping[int, Process],
) -> Rank:
    if trainer.waits and trainer.shown is not None:
        return trainer.shown
    own = [worker for worker in workers if worker.meta.rank == trainer.meta.rank]
    gpu = gpu_of(trainer.meta, trainer.config, trainer.host_pid, gpus)
    rank = trainer.shown = make_rank(trainer, own, now, gpu.uuid if gpu else None)
    timeline = trainer.figures.timeline if trainer.figures is not None else None
    if timeline is not None and trainer.alive:
        process = by_pid.get(trainer.host_pid)
        readings: dict[str, float | None] = {
            "rss_bytes": _rss(trainer, process),
            "device_memory_bytes": trainer.scalars.get("cuda.allocated_bytes"),
        }
        if gpu is not None and gpu.state == "ok":
            readings["gpu_utilization_ratio"] = gpu.utilization_ratio
            readings["sm_clock_hertz"] = gpu.sm_clock_hertz
        timeline.gauge(int(now.monotonic * 1e9), readings)
    return rank


def _rss(trainer: Follower, process: Process | None) -> float | None:
    if process is not None and process.rss_bytes is not None:
        return float(process.rss_bytes)
    return trainer.scalars.get("proc.rss_bytes")


def run_state(ranks: Sequence[RunState]) -> RunState:
    """Live while any rank is; without live ranks, the worst outcome counts."""
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
    found: dict[str, Any] = {"hotspots": spots} if spots else {}
    if any(worker.config.get("samples_drawn") is True for worker in workers):
        found["samples_drawn"] = True
    return {**lead.config, **found} if found else lead.config


def _pids(trainers: Sequence[Follower], processes: Sequence[Process]) -> tuple[int, ...]:
    """Host pids of the live ranks and of their children."""
    run = trainers[0].identity.run
    own = [trainer.host_pid for trainer in trainers if trainer.alive and trainer.host_pid != UNSEEN]
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


@lru_cache(maxsize=1024)
def _without_secrets(command: str | None) -> str | None:
    """The SDK removes them, but older versions did not."""
    return None if command is None else redact_text(command)

"""One rank as the snapshot shows it."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.model.clock import Moment
from monitor.model.records import Counters
from monitor.model.run import Exemplar, LoaderTimes, Phase, Rank, RunState
from monitor.runs.device import PREFIX, device_times, other_devices
from monitor.runs.figures import RankFigures
from monitor.runs.follow import Follower
from monitor.runs.stalls import OWN_PHASES
from monitor.runs.tally import Tally
from monitor.runs.workers import loader_times
from sdk import ring
from sdk.statistics import overhead_ratio

STALLED_SECONDS = 10.0
STALLED_TIMES_MEDIAN = 20.0
"""A judgement: an open phase counts as stalled beyond both."""
STALLED_OWN_PHASE_SECONDS = 120.0
"""Validation and checkpoints may take this long before they count as a hang."""


def make_rank(trainer: Follower, workers: Sequence[Follower], now: Moment, gpu_uuid: str | None) -> Rank:
    figures, counters, meta = trainer.figures, trainer.counters, trainer.meta
    assert figures is not None
    phase, live = live_phase(trainer, now)
    tally = figures.rolling.tally() if trainer.alive else figures.whole
    wall_ns = tally.raw_ns + (_idle_ns(figures, tally, now) if trainer.alive else 0)
    offset = trainer.identity.wall_offset_ns
    dropped = min(trainer.header.dropped, 1 << 62)
    phases = figures.phases(tally, counters) if tally.steps else ()
    others = other_devices(trainer.config, trainer.scalars)
    alone = all(one.kernels == 0 for one in others)
    return Rank(
        rank=meta.rank,
        state=_state(trainer, phase, live),
        pid=trainer.host_pid or trainer.header.pid,
        local_rank=meta.local_rank,
        hostname=meta.text("host"),
        gpu_uuid=gpu_uuid,
        device=meta.text("device"),
        steps=counters.cursor,
        lost=counters.lost,
        samples=counters.samples,
        tokens=counters.tokens,
        epoch=figures.epoch,
        warmup_steps=counters.warmup_steps,
        live_phase=phase,
        live_seconds=live,
        last_step_time=(figures.last_end_ns + offset) / 1e9 if figures.last_end_ns else None,
        step=tally.times(),
        whole=figures.whole.times(),
        phases=phases,
        iterations_per_second=_rate(tally.steps, wall_ns),
        micro_batches=tally.micro_batches_per_step,
        micro_batches_per_second=_rate(tally.micro_batches, wall_ns),
        samples_per_second=_rate(tally.samples, wall_ns),
        tokens_per_second=_rate(tally.tokens, wall_ns),
        device_times=device_times(tally, counters, trainer.scalars, dropped, alone),
        other_devices=others,
        loader=_loader(trainer, workers, phases),
        stalls=figures.stalls.stalls(figures.whole.raw_ns),
        loss=figures.loss,
        scalars={k: value for k, value in trainer.scalars.items() if not k.startswith(PREFIX)},
        overhead_ratio=_overhead(trainer, tally),
        dropped=dropped,
        histogram=tuple(counters.histogram),
        exemplars=_exemplars(counters, offset),
    )


def _loader(trainer: Follower, workers: Sequence[Follower], phases: Sequence[Phase]) -> LoaderTimes:
    data = next((phase.mean_seconds for phase in phases if phase.name == "data"), None)
    return loader_times([one.worker for one in workers if one.worker], trainer.scalars, data)


def _exemplars(counters: Counters, offset_ns: int) -> tuple[Exemplar | None, ...]:
    """One step for each nonempty bucket, in bucket order."""
    found: list[Exemplar | None] = [None] * len(counters.histogram)
    for place, (step, took_ns, end_ns) in counters.exemplars.items():
        if place < len(found):
            found[place] = Exemplar(step, took_ns / 1e9, (end_ns + offset_ns) / 1e9)
    return tuple(found)


def _rate(amount: int, wall_ns: int) -> float | None:
    """Per second; anything never counted (no samples, no tokens) stays absent."""
    return amount * 1e9 / wall_ns if amount and wall_ns else None


def _idle_ns(figures: RankFigures, tally: Tally, now: Moment) -> int:
    """How much longer than usual the current step has taken: rates fall while it hangs."""
    if not figures.last_end_ns or not tally.steady.count:
        return 0
    waited = int(now.monotonic * 1e9) - figures.last_end_ns
    return max(0, waited - 2 * tally.steady.high)


def live_phase(trainer: Follower, now: Moment) -> tuple[str | None, float | None]:
    """The currently open phase and its age; (None, None) if the writer is gone.

    A killed writer keeps the phase it died in, without an age.
    """
    header = trainer.header
    if header.state != ring.S_RUNNING:
        return None, None
    names = trainer.identity.phases
    name = names[header.live_phase] if header.live_phase < len(names) else "other"
    if not trainer.alive:
        return name, None
    newest = trainer.figures.last_end_ns if trainer.figures else None
    since = max(header.live_since_ns, newest or 0) / 1e9
    return name, max(0.0, now.monotonic - since)


def _state(trainer: Follower, phase: str | None, live: float | None) -> RunState:
    """Running becomes stalled once the open phase is far older than any step."""
    state = trainer.state()
    if state != "running" or live is None or not trainer.counters.read or trainer.figures is None:
        return state
    usual = trainer.figures.rolling.usual()
    median = usual.p50 / 1e9 if usual else 0.0
    limit = max(STALLED_SECONDS, STALLED_TIMES_MEDIAN * median)
    if phase in OWN_PHASES:
        limit = max(limit, STALLED_OWN_PHASE_SECONDS, 3 * _longest(trainer.figures, phase))
    return "stalled" if live > limit else "running"


def _longest(figures: RankFigures, name: str) -> float:
    """The longest this phase has taken recently, in seconds."""
    tails = [tail for phase, tail in figures.tails.items() if figures.names[phase] == name]
    return max((max(tail) for tail in tails if tail), default=0) / 1e9


def _overhead(trainer: Follower, tally: Tally) -> float | None:
    """What recording has cost so far (marks, sampling, the probe, starting, loader workers), as a share of
    the run's time; None for a short run. If the writer does not report it, it is at least the cost in its
    records."""
    figures, header = trainer.figures, trainer.header
    if figures is None or figures.last_end_ns is None:
        return None
    spent = max(header.overhead_ns, tally.overhead_ns)
    return overhead_ratio(spent, figures.last_end_ns - header.started_mono_ns)

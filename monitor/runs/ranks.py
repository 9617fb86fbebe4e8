"""One rank as the snapshot shows it."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.clock import Moment
from monitor.runs.figures import RankFigures
from monitor.runs.follow import Follower
from monitor.runs.sink import Counters
from monitor.runs.stalls import OWN_PHASES
from monitor.runs.tally import Tally
from monitor.runs.workers import loader_times
from monitor.snapshot import Exemplar, LoaderTimes, Phase, Rank, RunState
from sdk import ring

STALLED_SECONDS = 10.0
STALLED_TIMES_MEDIAN = 20.0
STALLED_OWN_PHASE_SECONDS = 120.0
"""Validation and checkpoints may take this long before they look like a hang."""


def make_rank(trainer: Follower, workers: Sequence[Follower], now: Moment, gpu_uuid: str | None) -> Rank:
    figures, counters, meta = trainer.figures, trainer.counters, trainer.meta
    assert figures is not None
    phase, live = live_phase(trainer, now)
    tally = figures.rolling.tally() if trainer.alive else figures.whole
    wall_ns = tally.raw_ns + (_idle_ns(figures, tally, now) if trainer.alive else 0)
    offset = trainer.identity.wall_offset_ns
    phases = figures.phases(tally, counters) if tally.steps else ()
    return Rank(
        rank=meta.rank,
        state=_state(trainer, phase, live),
        pid=trainer.host_pid,
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
        step=tally.steady.times(),
        whole=figures.whole.steady.times(),
        phases=phases,
        iterations_per_second=_rate(tally.steps, wall_ns),
        samples_per_second=_rate(tally.samples, wall_ns),
        tokens_per_second=_rate(tally.tokens, wall_ns),
        device_times=figures.device(tally, counters, min(trainer.header.dropped, 1 << 62)),
        loader=_loader(trainer, workers, phases),
        stalls=figures.stalls.stalls(figures.whole.raw_ns),
        loss=figures.loss,
        scalars=trainer.scalars,
        overhead_ratio=_overhead(trainer, tally),
        dropped=min(trainer.header.dropped, 1 << 62),
        histogram=tuple(counters.histogram),
        exemplars=_exemplars(counters, offset),
    )


def _loader(trainer: Follower, workers: Sequence[Follower], phases: Sequence[Phase]) -> LoaderTimes:
    data = next((phase.mean_seconds for phase in phases if phase.name == "data"), None)
    return loader_times([one.worker for one in workers if one.worker], trainer.scalars, data)


def _exemplars(counters: Counters, offset_ns: int) -> tuple[Exemplar | None, ...]:
    """One step for each bucket that has any, in the order of the buckets."""
    found = (counters.exemplars.get(place) for place in range(len(counters.histogram)))
    return tuple(Exemplar(e[0], e[1] / 1e9, (e[2] + offset_ns) / 1e9) if e else None for e in found)


def _rate(amount: int, wall_ns: int) -> float | None:
    """Per second; what was never counted (no samples, no tokens) stays absent."""
    return amount * 1e9 / wall_ns if amount and wall_ns else None


def _idle_ns(figures: RankFigures, tally: Tally, now: Moment) -> int:
    """How much longer than usual the step that is open now has taken: rates fall while it hangs."""
    if not figures.last_end_ns or not tally.steady.count:
        return 0
    waited = int(now.monotonic * 1e9) - figures.last_end_ns
    return max(0, waited - 2 * tally.steady.high)


def live_phase(trainer: Follower, now: Moment) -> tuple[str | None, float | None]:
    """The phase that is open now and for how long; (None, None) when the writer is gone.

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
    """Running becomes stalled when the open phase is far older than a step ever takes."""
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
    """Longest this phase has taken of late, in seconds."""
    tails = [tail for phase, tail in figures.tails.items() if figures.names[phase] == name]
    return max((max(tail) for tail in tails if tail), default=0) / 1e9


def _overhead(trainer: Follower, tally: Tally) -> float | None:
    """Our own cost in the loop; from the records, else from the header's counter."""
    if tally.overhead_ns and tally.raw_ns:
        return tally.overhead_ns / tally.raw_ns
    figures = trainer.figures
    spent = trainer.header.overhead_ns
    if figures is None or not spent or figures.first_begin_ns is None or figures.last_end_ns is None:
        return None
    looped = figures.last_end_ns - figures.first_begin_ns
    return min(1.0, spent / looped) if looped > 0 else None

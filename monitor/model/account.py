"""Where every second of a run went, from start to end: a partition, so the parts add up to the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from monitor.model.finding import Speedup
from monitor.model.run import Rank, Run

Kind = Literal["setup", "step", "apart", "stall", "unseen", "after"]
"""Before the first step; a phase of the steps; work outside them (validation, checkpoints); the excess of
unusually long steps; time in no step that was read; after the last step."""
APART = ("validate", "checkpoint")
SETUP = ("imports", "data", "model", "other")
"""Parts of the set-up that the probe distinguishes (`docs/probe.md`)."""
LIKE_PHASE = {"epoch_start": "data"}
"""Kinds of stall whose seconds are booked in a phase of another name."""


class Spent(Struct, frozen=True):
    """One part of a run's time."""

    name: str
    kind: Kind
    seconds: float
    share: float
    """Of the whole run."""
    count: int | None = None
    """How often it happened, where that is counted."""


class Avoidable(Struct, frozen=True):
    """Seconds of the steps that all remedies together would have saved."""

    low: float
    likely: float
    high: float
    share: float
    """Of the whole run, by the likely figure."""


class Account(Struct, frozen=True):
    """All parts in the order in which they begin. With several ranks, these are the first rank's."""

    seconds: float
    parts: tuple[Spent, ...] = ()
    kinds: tuple[Spent, ...] = ()
    """The same, summed by kind."""
    avoidable: Avoidable | None = None


def account_of(run: Run) -> Account:
    """A run that never began to train spent all its time on set-up."""
    total = run.elapsed_seconds
    if total <= 0.0:
        return Account(0.0)
    found = [*_setup(run), *(_steps(run, run.ranks[0]) if run.ranks else ())]
    parts = tuple(
        Spent(name, kind, seconds, seconds / total, count)
        for name, kind, seconds, count in found
        if seconds > 0.0
    )
    return Account(total, parts, _by_kind(parts), _avoidable(run.combined, parts, total))


def _by_kind(parts: tuple[Spent, ...]) -> tuple[Spent, ...]:
    sums: dict[Kind, tuple[float, float]] = {}
    for part in parts:
        seconds, share = sums.get(part.kind, (0.0, 0.0))
        sums[part.kind] = (seconds + part.seconds, share + part.share)
    return tuple(Spent(kind, kind, *both) for kind, both in sums.items())


Part = tuple[str, Kind, float, int | None]


def _setup(run: Run) -> Iterator[Part]:
    whole = run.setup_seconds if run.setup_seconds is not None else run.elapsed_seconds
    told = run.config.get("setup")
    named = _told_seconds(told) if isinstance(told, Mapping) else {}
    scale = min(1.0, whole / total) if (total := sum(named.values())) > 0.0 else 1.0
    left = whole
    for name, seconds in named.items():
        left -= seconds * scale
        if name != "other":
            yield name, "setup", seconds * scale, None
    yield "other" if named else "set-up", "setup", left + named.get("other", 0.0) * scale, None


def _told_seconds(told: Mapping[str, object]) -> dict[str, float]:
    values = {name: told.get(f"{name}_seconds") for name in SETUP}
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}


def _steps(run: Run, rank: Rank) -> Iterator[Part]:
    """Phases without their stalls, then the stalls, then the time in no step."""
    if run.training_seconds is None:
        return
    phases = {phase.name: phase.total_seconds for phase in rank.phases}
    stalls = [stall for stall in rank.stalls if stall.kind not in APART]
    for stall in stalls:
        name = LIKE_PHASE.get(stall.kind, stall.kind)
        if name in phases:
            phases[name] = max(0.0, phases[name] - stall.total_seconds)
    counts = {stall.kind: stall.count for stall in rank.stalls}
    for name, seconds in phases.items():
        yield name, "apart" if name in APART else "step", seconds, counts.get(name) if name in APART else None
    for stall in stalls:
        if LIKE_PHASE.get(stall.kind, stall.kind) in phases:
            yield stall.kind, "stall", stall.total_seconds, stall.count
    yield from _rest(run, rank)


def _rest(run: Run, rank: Rank) -> Iterator[Part]:
    end = run.started + run.elapsed_seconds
    after = 0.0 if rank.last_step_time is None else max(0.0, end - rank.last_step_time)
    seen = sum(phase.total_seconds for phase in rank.phases)
    yield "unseen", "unseen", max(0.0, (run.training_seconds or 0.0) - seen - after), None
    yield "after", "after", after, None


def _avoidable(gain: Speedup | None, parts: tuple[Spent, ...], total: float) -> Avoidable | None:
    if gain is None or gain.likely <= 1.0:
        return None
    steps = sum(part.seconds for part in parts if part.kind in ("step", "apart", "stall"))
    low, likely, high = (steps * (1.0 - 1.0 / max(1.0, one)) for one in (gain.low, gain.likely, gain.high))
    return Avoidable(low, likely, high, likely / total)

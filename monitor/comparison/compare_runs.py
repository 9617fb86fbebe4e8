"""Two runs side by side: same work? faster beyond noise? and by as much as predicted?

A pure function of two records. Speed is judged by samples per second (or else steps), never by utilization.
The interval is a bootstrap over stretches of each run; the noise floor is what the same procedure finds
between *one* run and itself, where there is nothing to find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from monitor.comparison.difference import Difference, Trouble, differences, troubles
from monitor.comparison.rates import (
    Stretch,
    Unit,
    has_samples,
    interval_of,
    noise_of,
    plain_rate,
    rate,
    ratio,
    stretches_of,
)
from monitor.comparison.realised import Measured, Realised, fates, realise, together
from monitor.comparison.settings import setting
from monitor.model.finding import Speedup
from monitor.model.gpu import Range
from monitor.model.history import RunRecord
from monitor.model.run import Run, Window

LEAST_NOISE = 0.01
"""No machine is quieter than this."""
PLAIN_CHANGE = 0.1
"""The change that counts if the runs are too short for an interval. A judgement."""
Verdict = Literal["faster", "slower", "same", "unsure"]


class Side(msgspec.Struct, frozen=True):
    """The figures of one run."""

    run: str
    name: str
    state: str
    steps: int
    seconds: float | None
    samples_per_second: float | None
    steps_per_second: float | None
    step_p50_seconds: float | None
    step_p95_seconds: float | None
    epoch_seconds: float | None
    gpu_utilization_ratio: float | None
    starved_ratio: float | None
    device_memory_bytes: float | None
    rss_bytes: float | None
    stall_share: float
    warmup_steps: int
    lost: int
    rate: Range | None = None
    """Spread of the rate over the run's stretches, in the comparison's unit."""


class PhaseChange(msgspec.Struct, frozen=True):
    """Seconds per step before and after; 0 on a side that lacks the phase."""

    name: str
    before_seconds: float
    after_seconds: float
    saved_seconds: float


class Comparison(msgspec.Struct, frozen=True):
    a: Side
    b: Side
    unit: Unit
    speedup: float | None
    """B's rate relative to A's."""
    low: float | None
    high: float | None
    noise_floor: float
    """A change smaller than this (as a ratio) is noise."""
    verdict: Verdict
    same_work: bool
    differences: tuple[Difference, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    phases: tuple[PhaseChange, ...] = ()
    realised: tuple[Realised, ...] = ()
    remaining: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    predicted_together: Speedup | None = None
    """The predicted gain of all remedies together, if all their findings are gone."""

    @property
    def one_run(self) -> bool:
        """Whether it was asked for one run twice."""
        return self.a.run == self.b.run

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the two may not be comparable, one clause each."""
        texts = [one.text() for one in self.differences] + [one.text() for one in self.troubles]
        return tuple(texts)


def compare(a: RunRecord, b: RunRecord) -> Comparison:
    unit: Unit = "samples/s" if has_samples(a.run) and has_samples(b.run) else "steps/s"
    one, two = stretches_of(a.run, unit), stretches_of(b.run, unit)
    speedup = ratio(rate(one), rate(two)) or ratio(plain_rate(a.run, unit), plain_rate(b.run, unit))
    low, high = interval_of(one, two)
    noise = max(LEAST_NOISE, noise_of(one), noise_of(two))
    unlike, doubtful = differences(a.run, b.run), (*troubles(a), *troubles(b))
    gone, remaining, new = fates(a.findings, b.findings)
    return Comparison(
        a=_side(a.run, one),
        b=_side(b.run, two),
        unit=unit,
        speedup=speedup,
        low=low,
        high=high,
        noise_floor=noise,
        verdict=_verdict(speedup, low, high, noise),
        same_work=not unlike and not doubtful,
        differences=unlike,
        troubles=doubtful,
        phases=_phases(a.run, b.run),
        realised=realise(gone, (a.run, b.run), Measured(speedup, low, high, noise), unlike, doubtful),
        remaining=tuple(finding.id for finding in remaining),
        new=tuple(finding.id for finding in new),
        predicted_together=together(gone, a.run, remaining),
    )


def _verdict(speedup: float | None, low: float | None, high: float | None, noise: float) -> Verdict:
    if speedup is None:
        return "unsure"
    if low is None or high is None:
        return "unsure" if abs(speedup - 1.0) < PLAIN_CHANGE else ("faster" if speedup > 1.0 else "slower")
    if abs(speedup - 1.0) <= noise:
        return "same"
    if low > 1.0:
        return "faster"
    return "slower" if high < 1.0 else "unsure"


# ── Figures ──


def _side(run: Run, stretches: list[Stretch]) -> Side:
    ended = run.ended if run.ended is not None else _newest(run)
    rates = [work / took for work, took in stretches]
    return Side(
        run=run.id,
        name=run.name,
        state=run.state,
        steps=run.steps,
        seconds=ended - run.started if ended is not None else None,
        samples_per_second=run.samples_per_second,
        steps_per_second=run.iterations_per_second,
        step_p50_seconds=run.step.p50,
        step_p95_seconds=run.step.p95,
        epoch_seconds=_epoch_seconds(run),
        gpu_utilization_ratio=_over_time(run, lambda window: window.gpu_utilization_ratio),
        starved_ratio=run.starved_ratio,
        device_memory_bytes=_most(run, "device_memory_bytes", "cuda.max_allocated_bytes"),
        rss_bytes=_most(run, "rss_bytes", "proc.rss_bytes"),
        stall_share=sum(stall.share for stall in run.stalls),
        warmup_steps=run.ranks[0].warmup_steps if run.ranks else 0,
        lost=run.lost,
        rate=Range(min(rates), rate(stretches) or 0.0, max(rates), len(rates)) if rates else None,
    )


def _newest(run: Run) -> float | None:
    return max((rank.last_step_time for rank in run.ranks if rank.last_step_time is not None), default=None)


def _epoch_seconds(run: Run) -> float | None:
    """Data set size over rate, if the probe knows the size; else absent."""
    size = setting(run, "loader", "dataset_len")
    if not isinstance(size, int) or not run.samples_per_second:
        return None
    return size / run.samples_per_second


def _over_time(run: Run, field: Callable[[Window], float | None]) -> float | None:
    known = [(value, w.steps_seconds) for w in run.timeline if (value := field(w)) is not None]
    took = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / took if took else None


def _most(run: Run, field: str, scalar: str) -> float | None:
    """The peak, from the timeline or any rank's latest scalars."""
    seen = [float(value) for window in run.timeline if (value := getattr(window, field)) is not None]
    seen += [rank.scalars[scalar] for rank in run.ranks if scalar in rank.scalars]
    return max(seen, default=None)


def _phases(a: Run, b: Run) -> tuple[PhaseChange, ...]:
    before = {phase.name: phase.mean_seconds for phase in a.phases}
    after = {phase.name: phase.mean_seconds for phase in b.phases}
    found = []
    for name in dict.fromkeys([*before, *after]):
        one, two = before.get(name, 0.0), after.get(name, 0.0)
        found.append(PhaseChange(name, one, two, one - two))
    return tuple(sorted(found, key=lambda change: -abs(change.saved_seconds)))

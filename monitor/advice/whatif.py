"""What a change would gain: a small model of one training step, not a table of constants.

A step is the sum of what the main process does (its *parts*) plus what it waits for data. With
workers, loading overlaps with the rest, so only the longer of the two counts; all of it has to fit
into the cores there are, and every pass over the data begins with an empty queue::

    no workers   T = rest + work
    W workers    T = max(rest + hand-over, work / W, (rest · threads + cpu · work) / cores)
                     + (work - T) / steps of an epoch

A remedy is a `Change`: seconds saved in named parts, a factor on the loader's work, another number
of workers, a larger batch. Several changes are combined by the cause they remove, so that a second
is never counted twice, and a loader hidden behind compute gains nothing when it gets faster.

What goes also leaves the caches to what stays: work of milliseconds between two passes makes each
of them begin cold, at a price of about the second-level cache's refill (`COLD_SECONDS` a phase).

The gain is T / (T - saved), so what is left decides it, and the more goes the less is known about
the rest. The range follows from that: the rule's own doubt about what goes (`low`, `high`) and the
doubt about the rest are independent and add up as squares, on the scale of ratios.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import exp, hypot, log

from monitor.snapshot import Speedup

MAX_SPEEDUP = 1000.0
COLD_SECONDS, COLD_SHARE = 120e-6, 0.45
"""What a phase loses by beginning with cold caches, at most: a megabyte or two read again, and never
more than this share of it."""
COLD_AFTER = 3e-3
"""So much work in between makes half of that loss."""
DOUBT_LEAST, DOUBT_MOST = 0.12, 0.25
"""How much (as the logarithm of a ratio) the rest of a step differs between two runs of one script with
nothing changed, minutes apart on a machine with neighbours; and how much more when it is all that a remedy
leaves: the smaller the rest, the less of it was seen by itself."""
DOUBT_SHARE = 0.6
"""Runs differ, but whether there is a gain at all is not in doubt: at most this share of its logarithm."""
LESS, MORE = 0.85, 1.1
"""How much of a change happens at least and at most where its rule has no bounds of its own."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds a step no longer spends in `part` ("*": wherever the main process spends it); `cause`
    names the second, so it counts once."""

    part: str
    seconds: float
    cause: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a remedy does to the step."""

    savings: tuple[Saving, ...] = ()
    work_left: float = 1.0
    """Factor on the loader's seconds a batch."""
    workers: int | None = None
    """New number of workers; None leaves it."""
    batch: float = 1.0
    """Factor on the batch size: variable parts grow with it, fixed ones do not."""
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Seconds of parts (and of "data") that do not grow with the batch, where a rule knows better."""
    everything: float = 1.0
    """Factor on the whole period (clocks back to normal, contention gone)."""


@dataclass(frozen=True, slots=True)
class StepModel:
    """One step of a run as measured. Seconds per step; stalls spread over the steps."""

    parts: Mapping[str, float]
    """What the main process does, by phase; the wait for data is not among them."""
    wait: float = 0.0
    """Exposed wait for data."""
    work: float = 0.0
    """Loader seconds a batch if one process did it all."""
    work_cpu: float = 1.0
    """Share of `work` that needs a core; the rest waits (disk, network, sleep)."""
    workers: int = 0
    cores: float = 1.0
    """Cores this run can have."""
    threads: float = 1.0
    """Cores the main process keeps busy while it does not wait."""
    handover: float = 0.0006
    """Seconds the main process spends to take a batch from a worker."""
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Of `parts` (and of "data", the wait): seconds that do not grow with the batch."""
    worker_slowdown: float = 1.0
    """Factor on the loader's CPU work when it moves from the loop into a worker."""
    worker_seconds: float = 0.0
    """What a worker spends on a batch to hand it over."""
    crowded: float = 1.0
    """What the cores give when more processes want them than there are cores."""
    epoch_steps: float | None = None
    """Steps between two starts of the loader; None: not known, or endless."""

    @property
    def rest(self) -> float:
        return sum(self.parts.values())

    @property
    def period(self) -> float:
        return self.rest + self.wait

    def apply(self, change: Change) -> StepModel:
        """The step as it would be after `change`."""
        parts, wait_saved = self._shorten(change.savings)
        after = replace(self, parts=parts, work=self.work * change.work_left)
        if change.workers is not None:
            after = after._with_workers(change.workers)
        if change.batch != 1.0:
            after = _grow(replace(after, fixed={**self.fixed, **change.fixed}), change.batch)
        wait = max(0.0, after._wait_from(self, change) - wait_saved)
        if change.everything != 1.0:
            parts = {name: seconds * change.everything for name, seconds in after.parts.items()}
            return replace(after, parts=parts, wait=wait * change.everything)
        return replace(after, wait=wait)

    def _with_workers(self, workers: int) -> StepModel:
        """The same work in so many workers; out of the loop it costs more."""
        moved = self.workers <= 0 < workers
        if not moved:
            return replace(self, workers=workers)
        slower = 1.0 + (self.worker_slowdown - 1.0) * self.work_cpu
        return replace(self, workers=workers, work=self.work * slower + self.worker_seconds)

    def _shorten(self, savings: Iterable[Saving]) -> tuple[dict[str, float], float]:
        """Parts after the savings, each cause once and never below zero; and what "data" saves."""
        by_cause: dict[tuple[str, str], float] = {}
        for saving in savings:
            key = (saving.part, saving.cause)
            by_cause[key] = max(by_cause.get(key, 0.0), saving.seconds)
        parts, wait_saved = dict(self.parts), 0.0
        for (part, _), seconds in by_cause.items():
            if part == "data":
                wait_saved += seconds
            elif part == "*":
                left = max(0.0, 1.0 - seconds / (sum(parts.values()) or 1.0))
                parts = {name: value * left for name, value in parts.items()}
            elif part in parts:
                parts[part] = max(0.0, parts[part] - seconds)
        return parts, wait_saved

    def _wait_from(self, before: StepModel, change: Change) -> float:
        """The wait for data after the change, anchored at the wait that was measured."""
        if self.workers <= 0:
            if before.workers > 0:
                return self.work
            fixed = min(before.wait, self.fixed.get("data", 0.0))
            return (fixed + (before.wait - fixed) * change.batch) * change.work_left
        modelled = self.loaded_period() - self.rest
        if before.workers <= 0:
            return max(0.0, modelled)
        expected = max(0.0, before.loaded_period() - before.rest)
        if change.work_left == 1.0 and change.workers is None:
            return max(0.0, modelled + before.wait - expected)
        return max(0.0, modelled) * (min(1.0, before.wait / expected) if expected > 0 else 1.0)

    def loaded_period(self) -> float:
        """Step period with workers: the slowest of main process, loader and cores; and at each start
        of the loader the first batch is waited for in full."""
        main = self.rest + self.handover
        loader = self.work / max(1, self.workers)
        given = self.cores * (self.crowded if self.workers + self.threads > self.cores else 1.0)
        cores = (self.rest * self.threads + self.work * self.work_cpu) / max(given, 0.1)
        longest = max(main, loader, cores)
        return longest + (max(0.0, self.work - longest) / self.epoch_steps if self.epoch_steps else 0.0)


def _grow(model: StepModel, batch: float) -> StepModel:
    """The model with a batch `batch` times as large."""
    parts = {}
    for name, seconds in model.parts.items():
        fixed = min(seconds, model.fixed.get(name, 0.0))
        parts[name] = fixed + (seconds - fixed) * batch
    return replace(model, parts=parts, work=model.work * batch)


def ratio(model: StepModel, change: Change) -> float:
    """Samples per second after the change over before; at least 1."""
    if model.period <= 0:
        return 1.0
    after = model.apply(change)
    period = after.period
    if change.batch == change.everything == 1.0 and after.workers <= 0:
        period -= _warmer(after, model.period - period)
    if period <= 0:
        return MAX_SPEEDUP
    return min(MAX_SPEEDUP, max(1.0, change.batch * model.period / period))


def _warmer(after: StepModel, gone: float) -> float:
    """Seconds the rest of the step gets back because its caches stay warm when `gone` seconds go."""
    if gone <= 0:
        return 0.0
    cold = sum(min(COLD_SHARE * seconds, COLD_SECONDS) for seconds in (*after.parts.values(), after.wait))
    return cold * gone / (gone + COLD_AFTER)


def predict(model: StepModel, likely: Change, low: Change | None, high: Change | None, why: str) -> Speedup:
    """Low, likely and high for one remedy, in order whatever the three changes are."""
    least = at_least(model, likely, low)
    most = ratio(model, high if high is not None else scaled(likely, MORE))
    return in_range(ratio(model, likely), least, most, why)


def at_least(model: StepModel, likely: Change, low: Change | None) -> float:
    """The gain when as little of the change happens as its rule allows for."""
    return ratio(model, low if low is not None else scaled(likely, LESS))


def in_range(likely: float, least: float, most: float, why: str) -> Speedup:
    """The range around a likely gain: the rule's own bounds widened by the doubt about the rest."""
    least, most = max(1.0, min(least, likely)), max(most, likely)
    gone = 1.0 - 1.0 / likely
    doubt = min(DOUBT_LEAST, DOUBT_SHARE * log(likely)) + DOUBT_MOST * gone * gone
    low = max(1.0, likely * exp(-hypot(log(likely / least), doubt)))
    high = min(MAX_SPEEDUP, likely * exp(hypot(log(most / likely), doubt)))
    return Speedup(low=round(low, 3), likely=round(likely, 3), high=round(max(high, likely), 3), why=why)


def scaled(change: Change, factor: float) -> Change:
    """The same change, with `factor` of its effect (savings are capped where they apply)."""
    savings = tuple(replace(saving, seconds=saving.seconds * factor) for saving in change.savings)
    left = max(0.0, 1.0 - (1.0 - change.work_left) * factor)
    everything = max(0.01, 1.0 - (1.0 - change.everything) * factor)
    batch = 1.0 + (change.batch - 1.0) * factor
    return replace(change, savings=savings, work_left=left, everything=everything, batch=max(1.0, batch))


def combine(changes: Iterable[Change]) -> Change:
    """All changes at once. A second saved twice for the same cause counts once."""
    result = Change()
    for change in changes:
        workers = change.workers if result.workers is None else max(result.workers, change.workers or 0)
        result = Change(
            savings=result.savings + change.savings,
            work_left=min(result.work_left, change.work_left),
            workers=workers,
            batch=max(result.batch, change.batch),
            fixed={**result.fixed, **change.fixed},
            everything=min(result.everything, change.everything),
        )
    return result

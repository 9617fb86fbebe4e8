"""What a change would gain: a small model of one training step, not a table of constants.

A step is the sum of what the main process does (its *parts*) plus what it waits for data. With
workers, loading overlaps with the rest, so only the longer of the two counts; all of it has to fit
into the cores there are::

    no workers   T = rest + work
    W workers    T = max(rest + hand-over, work / W, (rest · threads + cpu · work) / cores)

A remedy is a `Change`: seconds saved in named parts, a factor on the loader's work, another number
of workers, a larger batch. Several changes are combined by the cause they remove, so that a second
is never counted twice, and a loader hidden behind compute gains nothing when it gets faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from monitor.snapshot import Speedup

MAX_SPEEDUP = 1000.0
RELIEF, RELIEF_MOST = 0.15, 0.35
"""What goes leaves caches, allocator and cores to the rest of the step, so the gain is larger than its own
seconds: likely and at most, as a share of the gain. Calibrated on the first run of the diagnosis benchmark,
in which realised gains were above the bare model's in 23 of 29 cases."""


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
    """Of `parts`: seconds that do not grow with the batch."""

    @property
    def rest(self) -> float:
        return sum(self.parts.values())

    @property
    def period(self) -> float:
        return self.rest + self.wait

    def apply(self, change: Change) -> StepModel:
        """The step as it would be after `change`."""
        parts, wait_saved = self._shorten(change.savings)
        workers = self.workers if change.workers is None else change.workers
        after = replace(self, parts=parts, work=self.work * change.work_left, workers=workers)
        if change.batch != 1.0:
            after = _grow(after, change.batch)
        wait = max(0.0, after._wait_from(self, change) - wait_saved)
        if change.everything != 1.0:
            parts = {name: seconds * change.everything for name, seconds in after.parts.items()}
            return replace(after, parts=parts, wait=wait * change.everything)
        return replace(after, wait=wait)

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
            return before.wait * change.work_left * change.batch
        modelled = self._loaded_period() - self.rest
        if before.workers <= 0:
            return max(0.0, modelled)
        error = before.wait - max(0.0, before._loaded_period() - before.rest)
        untouched = change.work_left == 1.0 and change.workers is None
        return max(0.0, modelled + (error if untouched else min(error, 0.0)))

    def _loaded_period(self) -> float:
        """Step period with workers: the slowest of main process, loader and cores."""
        main = self.rest + self.handover
        loader = self.work / max(1, self.workers)
        cores = (self.rest * self.threads + self.work * self.work_cpu) / max(self.cores, 0.1)
        return max(main, loader, cores)


def _grow(model: StepModel, batch: float) -> StepModel:
    """The model with a batch `batch` times as large."""
    parts = {}
    for name, seconds in model.parts.items():
        fixed = min(seconds, model.fixed.get(name, 0.0))
        parts[name] = fixed + (seconds - fixed) * batch
    return replace(model, parts=parts, work=model.work * batch)


def ratio(model: StepModel, change: Change) -> float:
    """Samples per second after the change over before; at least 1."""
    after = model.apply(change).period
    if model.period <= 0:
        return 1.0
    if after <= 0:
        return MAX_SPEEDUP
    return min(MAX_SPEEDUP, max(1.0, change.batch * model.period / after))


def predict(model: StepModel, likely: Change, low: Change | None, high: Change | None, why: str) -> Speedup:
    """Low, likely and high for one remedy, in order whatever the three changes are."""
    bare = ratio(model, likely)
    middle = min(MAX_SPEEDUP, 1.0 + (1.0 + RELIEF) * (bare - 1.0))
    lowest = min(1.0 + 0.8 * (bare - 1.0), ratio(model, low if low is not None else scaled(likely, 0.7)))
    most = max(bare, ratio(model, high if high is not None else scaled(likely, 1.2)))
    highest = max(middle, min(MAX_SPEEDUP, 1.0 + (1.0 + RELIEF_MOST) * (most - 1.0)))
    return Speedup(low=round(lowest, 3), likely=round(middle, 3), high=round(highest, 3), why=why)


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
            everything=min(result.everything, change.everything),
        )
    return result

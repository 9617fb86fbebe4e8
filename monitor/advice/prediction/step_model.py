"""A small model of one training step, and what a change does to it.

A step is the sum of what the main process does (its *parts*) and its wait for data. With workers, loading
overlaps with the rest, so only the longer of the two counts; all of it has to fit into the available cores,
and every pass over the data begins with an empty queue::

    no workers   T = rest + work
    W workers    T = max(rest + hand-over, work / W, (rest · threads + cpu · work) / cores)
                     + (work - T) / steps of an epoch

A remedy is a `Change`: seconds saved in named parts, a factor on the loader's work, another number of
workers, a larger batch. Several changes are combined by the cause they remove, so that no second is counted
twice, and speeding up a loader hidden behind compute gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from monitor.advice.prediction.lanes import Edit, Lanes

LEAST_CORES = 0.1
"""A quota below a tenth of a core counts as a tenth, so that it cannot be 0."""
LEAST_LEFT = 0.01
"""A change to everything leaves at least this much of a step."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds a step no longer spends in `part` ("*": wherever the main process spends them); `cause`
    identifies the seconds, so that they count once."""

    part: str
    seconds: float
    cause: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a remedy does to the step."""

    savings: tuple[Saving, ...] = ()
    work_left: float = 1.0
    """Factor on the loader's seconds per batch."""
    workers: int | None = None
    """New number of workers; None leaves it."""
    batch: float = 1.0
    """Factor on the batch size: variable parts grow with it, fixed ones do not."""
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Seconds of parts (and of "data") that do not grow with the batch, if a rule knows better."""
    everything: float = 1.0
    """Factor on the whole period (clocks back to normal, contention gone)."""
    device_left: float = 1.0
    """Factor on the device's own work, if its lane is known."""
    copies_left: float = 1.0
    """Factor on the time of copies to the device, which are then no longer waited for."""
    syncs_left: float = 1.0
    """Factor on the waits for device values."""


class Luck(NamedTuple):
    """What else may differ in a run after the change: see the fields of `Edit`."""

    host: float = 1.0
    along: float = 0.0


USUAL = Luck()


def saved(part: str, seconds: float, cause: str) -> Change:
    """The change that saves these seconds and nothing else."""
    return Change(savings=(Saving(part, seconds, cause),))


@dataclass(frozen=True, slots=True)
class StepModel:
    """One measured step of a run. Seconds per step, with stalls spread over the steps."""

    parts: Mapping[str, float]
    """What the main process does, by phase, excluding the wait for data."""
    wait: float = 0.0
    """Exposed wait for data."""
    work: float = 0.0
    """Loader seconds per batch if one process did it all."""
    work_cpu: float = 1.0
    """Share of `work` that needs a core; the rest waits (disk, network, sleep)."""
    workers: int = 0
    cores: float = 1.0
    """Cores available to this run."""
    threads: float = 1.0
    """Cores the main process keeps busy while it is not waiting."""
    handover: float = 0.0
    """Seconds the main process takes to receive a batch from a worker."""
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Seconds of `parts` (and of "data", the wait) that do not grow with the batch."""
    worker_slowdown: float = 1.0
    """Factor on the loader's CPU work when it moves from the loop into a worker."""
    worker_seconds: float = 0.0
    """What a worker spends per batch on handing it over."""
    crowded: float = 1.0
    """What the cores deliver when there are more processes than cores."""
    epoch_steps: float | None = None
    """Steps between two starts of the loader; None: unknown or endless."""
    steps: int | None = None
    """Number of steady steps behind the figures; None: many."""
    borrowed_prices: bool = False
    """The costs of workers and operations were measured on another machine."""
    device_busy: float | None = None
    """Share of the step in which the device computes, if measured."""
    lanes: Lanes | None = None
    """The step as shared between host and device, if measured."""

    @property
    def rest(self) -> float:
        return sum(self.parts.values())

    @property
    def period(self) -> float:
        return self.rest + self.wait

    def ratio(self, change: Change, after: float, luck: Luck = USUAL) -> float:
        """Steps per second after the change relative to before; `after` is the period of the host alone,
        `luck` what else may happen if host and device are two lanes."""
        if self.lanes is None or change.everything != 1.0:
            return self.period / after if after > 0 else inf
        loaded = self.apply(replace(change, batch=1.0))
        edit = Edit(
            saved={name: took - loaded.parts.get(name, 0.0) for name, took in self.parts.items()}
            | {"data": self.wait - loaded.wait},
            device=change.device_left,
            copies=change.copies_left,
            syncs=change.syncs_left,
            batch=change.batch,
            host=luck.host,
            along=luck.along,
        )
        own = sum(took for phase, took in self.lanes.graph.own.items() if phase != "data")
        return self.lanes.gain(edit, least=change.batch * loaded.loader_period(own))

    def loader_period(self, own: float) -> float:
        """Seconds in which the workers, if any, make a batch. The host needs a core for its `own` seconds,
        without the time it spent on data: that work is now the workers'."""
        if self.workers <= 0:
            return 0.0
        on_cores = (own + self.work * self.work_cpu) / max(self.cores, LEAST_CORES)
        return max(self.work / self.workers, on_cores)

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
        """The same work in this many workers; outside the loop it costs more."""
        moved = self.workers <= 0 < workers
        if not moved:
            return replace(self, workers=workers)
        slower = 1.0 + (self.worker_slowdown - 1.0) * self.work_cpu
        return replace(self, workers=workers, work=self.work * slower + self.worker_seconds)

    def _shorten(self, savings: Iterable[Saving]) -> tuple[dict[str, float], float]:
        """Parts after the savings, each cause once and never below zero; and the savings of "data"."""
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
        """The wait for data after the change, anchored to the measured wait."""
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
        """Step period with workers: the slowest of main process, loader and cores; at each start of the
        loader, the first batch is waited for in full."""
        main = self.rest + self.handover
        loader = self.work / max(1, self.workers)
        given = self.cores * (self.crowded if self.workers + self.threads > self.cores else 1.0)
        cores = (self.rest * self.threads + self.work * self.work_cpu) / max(given, LEAST_CORES)
        longest = max(main, loader, cores)
        return longest + (max(0.0, self.work - longest) / self.epoch_steps if self.epoch_steps else 0.0)


def _grow(model: StepModel, batch: float) -> StepModel:
    """The model with a batch `batch` times as large."""
    parts = {}
    for name, seconds in model.parts.items():
        fixed = min(seconds, model.fixed.get(name, 0.0))
        parts[name] = fixed + (seconds - fixed) * batch
    return replace(model, parts=parts, work=model.work * batch)


def scaled(change: Change, factor: float) -> Change:
    """The same change with `factor` of its effect (savings are capped where they apply)."""
    savings = tuple(replace(saving, seconds=saving.seconds * factor) for saving in change.savings)
    left = max(0.0, 1.0 - (1.0 - change.work_left) * factor)
    everything = max(LEAST_LEFT, 1.0 - (1.0 - change.everything) * factor)
    batch = 1.0 + (change.batch - 1.0) * factor
    device, copies, syncs = (
        max(0.0, 1.0 - (1.0 - value) * factor)
        for value in (change.device_left, change.copies_left, change.syncs_left)
    )
    return replace(
        change,
        savings=savings,
        work_left=left,
        everything=everything,
        batch=max(1.0, batch),
        device_left=device,
        copies_left=copies,
        syncs_left=syncs,
    )


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
            device_left=min(result.device_left, change.device_left),
            copies_left=min(result.copies_left, change.copies_left),
            syncs_left=min(result.syncs_left, change.syncs_left),
        )
    return result

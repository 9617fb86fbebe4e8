"""Timing inside a DataLoader: wrappers around its sampler iterator and its fetcher.

They hold no reference back to the iterator: a cycle would keep its workers alive until the next
garbage collection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ._random import states

clock = time.monotonic_ns
_CPU_EVERY = 4
"""Chosen: one timed batch in this many also reads the thread's CPU time."""
_WEIGHT_LIMIT = 64
"""Chosen: in a running mean a new batch weighs at least 1 in this many, so old ones fade out."""
_EVERY = 8
ENOUGH = 32
"""Chosen: the first `ENOUGH` batches are all timed, then one in `_EVERY`."""


class FetchTimes:
    """Running means per batch in ns; after the first batches, old ones fade out."""

    __slots__ = (
        "batches",
        "collate",
        "cpu",
        "drawn",
        "fetch",
        "indices",
        "pin",
        "pins",
        "sampled_cpu",
        "sampler",
        "samples",
    )

    def __init__(self) -> None:
        self.batches = self.indices = self.pins = 0
        self.sampler = self.fetch = self.collate = self.samples = self.pin = 0.0
        self.cpu = 0.0
        """Share of the fetch during which the thread ran, excluding time queued for a core."""
        self.sampled_cpu = False
        self.drawn: bool | None = None
        """Whether making samples drew random numbers, in whatever code; None: not looked yet."""

    def add(self, fetch: int, collate: int, samples: int) -> None:
        """Add a batch; `fetch` excludes its collate."""
        self.batches += 1
        weight = 1.0 / min(self.batches, _WEIGHT_LIMIT)
        self.fetch += (fetch - self.fetch) * weight
        self.collate += (collate - self.collate) * weight
        self.samples += (samples - self.samples) * weight

    def add_sampler(self, ns: int) -> None:
        self.indices += 1
        self.sampler += (ns - self.sampler) / min(self.indices, _WEIGHT_LIMIT)

    def add_pin(self, ns: int) -> None:
        self.pins += 1
        self.pin += (ns - self.pin) / min(self.pins, _WEIGHT_LIMIT)

    def scalars(self) -> dict[str, float]:
        """The ring's scalars; only what was measured."""
        values: dict[str, float] = {}
        if self.pins:
            values["loader.pin_s"] = self.pin / 1e9
        if not self.batches:
            return values | ({"loader.sampler_s": self.sampler / 1e9} if self.sampler else {})
        values |= {
            "loader.batches": float(self.batches),
            "loader.fetch_s": self.fetch / 1e9,
            "loader.collate_s": self.collate / 1e9,
            "loader.sampler_s": self.sampler / 1e9,
        }
        if self.samples:
            values["loader.getitem_s"] = self.fetch / self.samples / 1e9
        if self.sampled_cpu:
            values["loader.fetch_cpu_ratio"] = self.cpu
        if self.drawn:
            values["loader.samples_drawn"] = 1.0
        return values


class TimedSampler:
    """The iterator over a sampler, timed."""

    __slots__ = ("_count", "_times", "source")

    def __init__(self, source: Iterator[Any], times: FetchTimes) -> None:
        self.source = source
        self._times = times
        self._count = 0

    def __iter__(self) -> TimedSampler:
        return self

    def __next__(self) -> Any:
        self._count += 1
        times = self._times
        if self._count % _EVERY and times.indices > ENOUGH:
            return next(self.source)
        began = clock()
        index = next(self.source)
        times.add_sampler(clock() - began)
        return index


class TimedCollate:
    """The collate function, timed; `spent` is that of the last call."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.began = self.spent = 0
        self.first: Callable[[], None] | None = None
        """Called once the samples are made, before they are put together."""

    def __call__(self, samples: Any) -> Any:
        self.began = clock()
        if self.first is not None:
            self.first()
        batch = self.function(samples)
        self.spent = clock() - self.began
        return batch


class TimedFetcher:
    """A fetcher, timed. `done(began, collate_began, ended, samples)` is called for every batch."""

    def __init__(
        self, fetcher: Any, times: FetchTimes, done: Callable[[int, int, int, int], None] | None = None
    ) -> None:
        self.fetcher = fetcher
        self._times = times
        self._done = done
        self.collate = TimedCollate(fetcher.collate_fn)
        self._count = 0
        self.busy = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fetcher, name)

    def fetch(self, index: Any) -> Any:
        """Times all of the first batches, then some; in a worker (`done`), every one."""
        self._count += 1
        times = self._times
        if self._count % _EVERY and times.batches > ENOUGH and self._done is None:
            return self.fetcher.fetch(index)
        if times.drawn is None:
            self._look()
        before = _core_times() if times.batches % _CPU_EVERY == 0 else None
        self.collate.began = 0
        self.busy = True
        fetcher = self.fetcher
        fetcher.collate_fn = self.collate
        began = clock()
        try:
            batch = fetcher.fetch(index)
        finally:
            ended = clock()
            fetcher.collate_fn = self.collate.function
            self.busy = False
        collate_began = self.collate.began or ended
        if before is not None:
            self._add_cpu(before, ended - began)
        samples = _length(index)
        times.add(collate_began - began, ended - collate_began, samples)
        if self._done is not None:
            self._done(began, collate_began, ended, samples)
        return batch

    def _look(self) -> None:
        """Whether the samples of the next batch are drawn at random."""
        had = states()

        def compare() -> None:
            self._times.drawn = states() != had
            self.collate.first = None

        self.collate.first = compare

    def _add_cpu(self, before: tuple[int, int], wall: int) -> None:
        ran, queued = (now - then for now, then in zip(_core_times(), before, strict=True))
        share = min(1.0, ran / max(1, wall - queued))
        times = self._times
        times.cpu = share if not times.sampled_cpu else times.cpu + (share - times.cpu) / 4
        times.sampled_cpu = True


class TimedPin:
    """torch's function that pins a batch, timed: in the loop's thread or in the one that pins what workers
    send. It calls itself for a batch's parts; only the outermost call counts."""

    def __init__(self, module: Any, times: FetchTimes) -> None:
        self._module = module
        self._original = module.pin_memory
        self._times = times
        self._inside = threading.local()
        module.pin_memory = self._pin

    def _pin(self, data: Any, *device: Any) -> Any:
        if getattr(self._inside, "on", False):
            return self._original(data, *device)
        self._inside.on = True
        began = clock()
        try:
            return self._original(data, *device)
        finally:
            self._times.add_pin(clock() - began)
            self._inside.on = False

    def remove(self) -> None:
        if self._module.pin_memory == self._pin:
            self._module.pin_memory = self._original


def _core_times() -> tuple[int, int]:
    """Nanoseconds this thread has run on a core, and has queued for one (0 where unknown): on a busy machine,
    a loader queued for a core is computing, not waiting."""
    ran = time.thread_time_ns()
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return ran, int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return ran, 0


def _length(index: Any) -> int:
    """The number of samples an index stands for: in a batch it is a list, else one."""
    return len(index) if isinstance(index, (list, tuple)) else 1

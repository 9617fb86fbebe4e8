"""Inside the loader: where its time goes, in this process and in its workers."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

from .. import ring
from ._evaluation_starts import EvaluationStarts
from ._timing import ENOUGH, FetchTimes, TimedFetcher, TimedPin, TimedSampler, clock
from ._worker import WorkerInit
from ._worker_rings import WorkerRings
from .whole_batches import whole_batch_seconds

_MOST_TIMED = 8
"""Chosen: data sets whose whole batches are timed; a script that makes a new one every epoch pays no more."""


def is_dataloader(batches: Any) -> bool:
    """Whether this is a torch DataLoader, judged by what we need of it (torch may not even be imported)."""
    return all(hasattr(batches, name) for name in ("dataset", "num_workers", "worker_init_fn", "collate_fn"))


class LoaderWatch:
    """Wraps the parts of a DataLoader's iterator, and remembers the loader for the probe."""

    def __init__(self, meta: Callable[[], dict[str, Any]], folder: Callable[[], str | None]) -> None:
        self._meta = meta
        self._folder = folder
        """Where worker rings go; None: nowhere."""
        self.times = FetchTimes()
        self.loader: Any = None
        """The one to train on."""
        self._untried: Any = None
        """One that was iterated since; it may be for an evaluation. An iterator does not keep its loader."""
        self._trains = False
        """A batch has been trained on."""
        self.epochs_started = 0
        self.workers_started = 0
        self.evaluation_starts = EvaluationStarts()
        self._workers = WorkerRings(meta)
        self._cost_ns = 0
        self._iterator: Callable[[], Any] = lambda: None
        """The newest iterator, if it still exists; we must not keep its workers alive."""
        self._timing = True
        self._ticks = 0
        self._pin: TimedPin | None = None
        self._whole: dict[tuple[int, int, Any], float | None] = {}

    def started(self, loader: Any, make_iterator: Callable[[Any], Any], trains: bool = True) -> Any:
        """Create the loader's iterator, with our timing in it. `trains`: it is known to be for training; else
        it is only remembered, once another is."""
        if trains or not self._trains:
            self.loader, self._untried = loader, None
        else:
            self._untried = loader
        self.epochs_started += 1
        iterator = self._with_workers(loader, make_iterator) if loader.num_workers else make_iterator(loader)
        self._iterator = weakref.ref(iterator)
        if self._timing:
            self._time(iterator)
        return iterator

    def evaluating(self, loader: Any, make_iterator: Callable[[Any], Any]) -> Any:
        """Create the iterator of a loader for an evaluation."""
        return self.evaluation_starts.started(loader, make_iterator)

    def trained_on(self) -> None:
        """The newest batch was one to train on."""
        self._trains = True
        if self._untried is not None:
            self.loader, self._untried = self._untried, None

    def tick(self) -> None:
        """Once a second. Timers cost every batch some microseconds, so they stay in for `ENOUGH` batches,
        then for one second in eight."""
        self._ticks += 1
        wanted = self.times.indices < ENOUGH or self._ticks % 8 == 0
        if wanted == self._timing:
            return
        self._timing = wanted
        iterator = self._iterator()
        if iterator is not None:
            (self._time if wanted else self._untime)(iterator)

    def whole_batch_seconds(self) -> float | None:
        """What one indexing would take for a batch; timed once for a data set and batch size."""
        data = self.loader.dataset
        key = (id(data), len(data), getattr(self.loader.batch_sampler, "batch_size", None))
        if key not in self._whole and len(self._whole) < _MOST_TIMED:
            self._whole[key] = whole_batch_seconds(self.loader)
        return self._whole.get(key)

    def _with_workers(self, loader: Any, make_iterator: Callable[[Any], Any]) -> Any:
        """The init function tells workers to record; this works for spawned workers, too."""
        own = loader.worker_init_fn
        if isinstance(own, WorkerInit):
            return make_iterator(loader)
        had = getattr(loader, "_iterator", None)
        began = clock()
        folder = self._folder() if self._workers.wants_to_see(loader, began) else None
        if folder is not None:
            sampling = self._workers.next_generation(folder)
            loader.worker_init_fn = WorkerInit(own, self._worker_meta(loader), folder, sampling)
        self._cost_ns += clock() - began
        try:
            iterator = make_iterator(loader)
        finally:
            loader.worker_init_fn = own
        if iterator is not had:
            self.workers_started += loader.num_workers
        return iterator

    def _worker_meta(self, loader: Any) -> dict[str, Any]:
        meta = self._meta()
        keep = ("run", "name", "rank", "world", "host", "user", "sdk_version")
        return {
            "kind": ring.KIND_WORKER,
            **{key: meta.get(key) for key in keep},
            "parent_pid": os.getpid(),
            "dataset": type(loader.dataset).__name__,
            "config": self._workers.config,
        }

    def _time(self, iterator: Any) -> None:
        source = getattr(iterator, "_sampler_iter", None)
        if source is not None and not isinstance(source, TimedSampler):
            iterator._sampler_iter = TimedSampler(source, self.times)
        fetcher = getattr(iterator, "_dataset_fetcher", None)
        if fetcher is not None and hasattr(fetcher, "collate_fn") and not isinstance(fetcher, TimedFetcher):
            iterator._dataset_fetcher = TimedFetcher(fetcher, self.times)
        module = sys.modules.get("torch.utils.data._utils.pin_memory")
        if getattr(iterator, "_pin_memory", False) and module is not None and self._pin is None:
            self._pin = TimedPin(module, self.times)

    def _untime(self, iterator: Any) -> None:
        if isinstance(iterator._sampler_iter, TimedSampler):
            iterator._sampler_iter = iterator._sampler_iter.source
        if isinstance(getattr(iterator, "_dataset_fetcher", None), TimedFetcher):
            iterator._dataset_fetcher = iterator._dataset_fetcher.fetcher
        self.close()

    def take_cost(self) -> int:
        """ns spent since the last call: here on starting workers, and by the workers themselves as far as
        their rings have been read."""
        cost, self._cost_ns = self._cost_ns + self._workers.spent_ns, 0
        self._workers.spent_ns = 0
        return cost

    def run_ends(self) -> None:
        """Read what the last workers spent."""
        folder = self._folder()
        if folder is not None and self.workers_started:
            self._workers.read_new(folder)

    def close(self) -> None:
        """Remove what is not part of an iterator."""
        if self._pin is not None:
            self._pin.remove()
            self._pin = None

"""A DataLoader worker records its batches into a small ring of its own."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Callable
from typing import Any

from . import ring
from .fetching import FetchTimes, TimedFetcher, clock
from .hotspots import Hotspots
from .writer import RingWriter

SLOTS = 64
_PUBLISH = (2, 4, 8, 16, 32)
"""Batches after which the hot lines so far are shown: an epoch may be short."""
WAIT, FETCH, COLLATE = range(3)


class WorkerInit:
    """Takes the place of the user's `worker_init_fn` while workers start; calls it first."""

    def __init__(self, own: Callable[[int], Any] | None, meta: dict[str, Any], folder: str) -> None:
        self.own = own
        self.meta = meta
        self.folder = folder

    def __call__(self, worker: int) -> None:
        if self.own is not None:
            self.own(worker)
        try:
            watch(WorkerRecorder(worker, self.meta, self.folder))
        except (OSError, ValueError, ImportError, AttributeError):
            return  # no room, no right, another torch: a worker works without its ring, too


class WorkerRecorder:
    """One record per batch: waited, fetched, collated."""

    def __init__(self, worker: int, meta: dict[str, Any], folder: str) -> None:
        self._meta = {**meta, "worker_id": worker, "pid": os.getpid()}
        os.makedirs(folder, mode=0o700, exist_ok=True)
        name = f"{meta['run']}.{meta['rank']}.w{worker}.{os.getpid()}{ring.SUFFIX}"
        self._writer = RingWriter(os.path.join(folder, name), self._meta, slots=SLOTS)
        self._writer.max_bytes = 0
        self._record = array("Q", ring.EMPTY_RECORD)
        self._last = clock()
        self._times = FetchTimes()
        self._fetcher: TimedFetcher | None = None
        self._hotspots = Hotspots(threading.get_ident(), self._phase, done=self._found)

    def wrap(self, fetcher: Any) -> Any:
        self._fetcher = TimedFetcher(fetcher, self._times, self.batch)
        self._hotspots.start(0.001)
        return self._fetcher

    def batch(self, began: int, collate: int, ended: int, samples: int) -> None:
        """A batch is ready: its record goes from the end of the last one to here."""
        record = self._record
        record[ring.W_BEGIN], record[ring.W_END] = self._last, ended
        record[ring.W_SAMPLES] = samples
        record[ring.W_PHASES + WAIT] = max(0, began - self._last)
        record[ring.W_PHASES + FETCH] = collate - began
        record[ring.W_PHASES + COLLATE] = ended - collate
        self._last = ended
        self._writer.commit(record)
        self._writer.words[ring.H_LIVE] = ring.pack_live(WAIT, ended)
        self._hotspots.step()
        if self._writer.head in _PUBLISH:
            self._found(self._hotspots.result())

    def _phase(self) -> str | None:
        """What the worker does now; waiting is not ours to explain."""
        fetcher = self._fetcher
        if fetcher is None or not fetcher.busy:
            return None
        return "collate" if fetcher.collate.began else "fetch"

    def _found(self, spots: list[dict[str, Any]]) -> None:
        if not spots:
            return
        self._meta["config"] = {"hotspots": spots}
        self._writer.write_meta(self._meta)


def watch(recorder: WorkerRecorder) -> None:
    """Every fetcher this worker makes from now on is timed. The first is made right after this."""
    from torch.utils.data import _DatasetKind

    create = _DatasetKind.create_fetcher

    def create_fetcher(*args: Any, **kwargs: Any) -> Any:
        return recorder.wrap(create(*args, **kwargs))

    _DatasetKind.create_fetcher = staticmethod(create_fetcher)

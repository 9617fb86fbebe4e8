"""A DataLoader worker records its batches into its own small ring."""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

from .. import ring
from ..redact import redact_lines
from ..sampling.hotspots import Hotspots
from ..writer import RingWriter, prepare
from ._timing import FetchTimes, TimedFetcher, clock

SLOTS = 64
"""Chosen: 16 KiB of records. A daemon that reads once a second misses none below 64 batches per second."""
_PUBLISH = (2, 8)
"""Chosen: batches after which to publish the hot lines so far, since an epoch may be short; they are
published once more when sampling ends. Looking them up takes some milliseconds, so workers that were told an
earlier generation's lines publish only at the end."""
SAMPLING_WORKERS = 2
"""Chosen: all workers of a loader run the same code, so one that samples would do; two, because in a short
epoch a worker has few batches."""
_SAMPLE_EVERY_S = 0.001
"""Chosen: a worker that loads a sample in a few milliseconds shows its lines within a few batches."""
WAIT, FETCH, COLLATE = range(3)
_PHASES = {FETCH: "fetch", COLLATE: "collate"}


class WorkerInit:
    """Replaces the user's `worker_init_fn` while workers start, and calls it first."""

    def __init__(
        self, own: Callable[[int], Any] | None, meta: dict[str, Any], folder: str, sampling: bool
    ) -> None:
        self.own = own
        self.meta = meta
        self.folder = folder
        self.sampling = sampling

    def __call__(self, worker: int) -> None:
        if self.own is not None:
            self.own(worker)
        began = time.thread_time_ns()
        try:
            sampling = self.sampling and worker < SAMPLING_WORKERS
            recorder = WorkerRecorder(worker, self.meta, self.folder, sampling)
            watch(recorder)
            recorder.spend(time.thread_time_ns() - began)
        except (OSError, ValueError, ImportError, AttributeError):
            return  # no space, no permission, another torch: workers also work without a ring


class WorkerRecorder:
    """One record per batch: wait, fetch, collate."""

    def __init__(self, worker: int, meta: dict[str, Any], folder: str, sampling: bool) -> None:
        self._meta = {**meta, "worker_id": worker, "pid": os.getpid()}
        prepare(folder)
        name = f"{meta['run']}.{meta['rank']}.w{worker}.{os.getpid()}{ring.SUFFIX}"
        self._writer = RingWriter(os.path.join(folder, name), self._meta, slots=SLOTS)
        self._writer.max_bytes = 0
        self._record = array("Q", ring.EMPTY_RECORD)
        self._last = clock()
        self._times = FetchTimes()
        self._fetcher: TimedFetcher | None = None
        self._sampling_ns = 0
        """Sampling cost already accounted for."""
        self._told = 0
        """Samples when they were last published: without new ones there is nothing to say."""
        self._early = () if meta.get("config", {}).get("hotspots") else _PUBLISH
        self._hotspots = Hotspots(threading.get_ident(), self, _PHASES.__getitem__) if sampling else None

    def wrap(self, fetcher: Any) -> Any:
        self._fetcher = TimedFetcher(fetcher, self._times, self.batch)
        if self._hotspots is not None:
            self._hotspots.start(_SAMPLE_EVERY_S)
        return self._fetcher

    def spend(self, ns: int) -> None:
        """Add to the ring's count of what recording costs this worker."""
        self._writer.words[ring.H_OVERHEAD] += ns

    def batch(self, began: int, collate: int, ended: int, samples: int) -> None:
        """A batch is ready: its record runs from the end of the last one to now."""
        record = self._record
        record[ring.W_BEGIN], record[ring.W_END] = self._last, ended
        record[ring.W_SAMPLES] = samples
        record[ring.W_PHASES + WAIT] = max(0, began - self._last)
        record[ring.W_PHASES + FETCH] = collate - began
        record[ring.W_PHASES + COLLATE] = ended - collate
        self._last = ended
        self._writer.commit(record)
        if self._times.drawn and not self._meta.get("config", {}).get("samples_drawn"):
            self._tell(samples_drawn=True)
        self._writer.words[ring.H_LIVE] = ring.pack_live(WAIT, ended)
        self.spend(clock() - ended)
        if self._hotspots is not None:
            self._sampled(self._hotspots)

    @property
    def phase(self) -> int:
        """What the worker is doing, for the sampler; waits are not ours to explain."""
        fetcher = self._fetcher
        if fetcher is None or not fetcher.busy:
            return -1
        return COLLATE if fetcher.collate.began else FETCH

    def _sampled(self, hotspots: Hotspots) -> None:
        """A batch is done while sampling: publish the results occasionally and at the end."""
        began = time.thread_time_ns()
        over, samples = not hotspots.running, hotspots.samples
        hotspots.step()
        if (over or self._writer.head in self._early) and samples > self._told:
            self._told = samples
            self._publish(hotspots)
        if over:
            self._hotspots = None
        spent, self._sampling_ns = self._sampling_ns, hotspots.spent_ns
        self.spend(self._sampling_ns - spent + time.thread_time_ns() - began)

    def _publish(self, hotspots: Hotspots) -> None:
        spots = hotspots.evaluate().result()
        if spots:
            self._tell(hotspots=redact_lines(spots))

    def _tell(self, **found: Any) -> None:
        self._meta["config"] = {**self._meta.get("config", {}), **found}
        self._writer.write_meta(self._meta)


def watch(recorder: WorkerRecorder) -> None:
    """Time every fetcher this worker creates from now on. The first is created right after this."""
    from torch.utils import data

    kind: Any = data._DatasetKind
    create = kind.create_fetcher

    def create_fetcher(*args: Any, **kwargs: Any) -> Any:
        return recorder.wrap(create(*args, **kwargs))

    kind.create_fetcher = staticmethod(create_fetcher)

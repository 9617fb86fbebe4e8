"""The rings of a run's loader workers, from the view of the process that starts them: which workers sample,
what earlier ones found, what recording cost them, and when a ring can be deleted."""

from __future__ import annotations

import contextlib
import glob
import importlib
import os
from collections.abc import Callable
from typing import Any

from .. import ring
from ..sampling.budget import SHARE
from ..writer import is_locked

AGAIN_NS = 5 * 10**9
"""Chosen: a loader's new workers are recorded if the last recorded ones started this long ago. Recording
costs a worker some milliseconds at its start, which workers of a short epoch never make up for."""
FIRST = 2
"""Chosen: a loader's first generations are all recorded, for a run that ends soon; later ones only while all
of it has cost no more than sampling may."""


class WorkerRings:
    """Workers come and go with every epoch; those that start together are a generation."""

    def __init__(self, meta: Callable[[], dict[str, Any]]) -> None:
        self._meta = meta
        self._generations, self._next_sampled = 0, 1
        self._sampled = False
        self._known: set[str] = set()
        self._seen: dict[tuple[int, str], tuple[int, int]] = {}
        """By data set and batch size: generations recorded so far, and when the last one started."""
        self.config: dict[str, Any] = {}
        """The hot lines of the workers that sampled last; later workers show them, too."""
        self.spent_ns = self._total_ns = 0
        """What workers spent since somebody took it into account, and in all."""
        self._began: int | None = None

    def wants_to_see(self, loader: Any, now: int) -> bool:
        """Whether the workers that this loader is about to start should record. A loader made anew for every
        epoch counts as the same one."""
        if self._began is None:
            self._began = now
        key = id(loader.dataset), str(getattr(loader, "batch_size", None))
        count, last = self._seen.get(key, (0, 0))
        spent_too_much = self._total_ns > SHARE * (now - self._began)
        if count >= FIRST and (now - last < AGAIN_NS or spent_too_much):
            return False
        self._seen[key] = count + 1, now
        return True

    def next_generation(self, folder: str) -> bool:
        """Workers that record are about to start; returns whether they should sample. Their code is the same
        in every epoch, so only the 1st, 4th, 16th, … generation does."""
        for name in self.read_new(folder):  # two generations old: readers had an epoch's time to read it
            with contextlib.suppress(OSError):
                if not is_locked(os.path.join(folder, name)):
                    os.unlink(os.path.join(folder, name))
        self._generations += 1
        self._sampled = self._generations == self._next_sampled
        if self._sampled:
            self._next_sampled *= 4
            importlib.import_module("..structure.work", __package__)  # once here, not in every forked worker
        return self._sampled

    def read_new(self, folder: str) -> set[str]:
        """Read the rings that are new since last time; returns the others."""
        meta = self._meta()
        found = set(glob.glob(f"{meta.get('run')}.{meta.get('rank')}.w*", root_dir=folder))
        before, self._known = self._known, found
        for name in found - before:
            self._read(os.path.join(folder, name))
        return found & before

    def _read(self, path: str) -> None:
        """Read the ring of a worker that has ended or soon will."""
        with contextlib.suppress(OSError, ValueError):
            fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                overhead = ring.read_header(fd, os.fstat(fd).st_size).overhead_ns
                self.spent_ns += overhead
                self._total_ns += overhead
                config = (ring.read_meta(fd) or {}).get("config") if self._sampled else None
            finally:
                os.close(fd)
            if config:
                self.config = config

"""What a loop iterates: the user's loader, with its waits marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .core import Batches
from .loader import is_dataloader

if TYPE_CHECKING:
    from .monitor import TrainingMonitor


class MonitoredLoader:
    """An iterable around the user's loader that keeps its length and attributes."""

    def __init__(self, monitor: TrainingMonitor, batches: Iterable[Any]) -> None:
        self._monitor = monitor
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        self._monitor.claim()
        return Batches(self._monitor.recorder, self._start, self._monitor.counts_batches)

    def _start(self) -> Iterator[Any]:
        """The first batch is asked for: an epoch begins, and its workers start."""
        if not self._monitor.recorder.depth:
            self._monitor.recorder.epoch()
        if is_dataloader(self._batches):
            made: Iterator[Any] = self._monitor.loaders.started(self._batches, iter)
            return made
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

"""The two things a loop holds in its hands: a phase to enter, and a loader to iterate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .core import Batches
from .guard import Compiling
from .loader import is_dataloader

if TYPE_CHECKING:
    from .monitor import TrainingMonitor


class Phase:
    """A named phase as a context manager. One object per name, entered as often as wanted."""

    __slots__ = ("_phase", "_pop", "_push")

    def __init__(self, monitor: TrainingMonitor, phase: int) -> None:
        self._push = monitor.recorder.push
        self._pop = monitor.recorder.pop
        self._phase = phase

    def __enter__(self) -> None:
        if not Compiling.check():
            self._push(self._phase)

    def __exit__(self, *failure: object) -> None:
        if not Compiling.check():
            self._pop()


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

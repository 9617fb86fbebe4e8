"""The two things a loop holds in its hands: a phase to enter, and a loader to iterate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .guard import Compiling
from .loader import is_dataloader
from .phases import OTHER

if TYPE_CHECKING:
    from .monitor import TrainingMonitor


class Phase:
    """A named phase as a context manager. One object per name, entered as often as wanted."""

    __slots__ = ("_id", "_monitor", "_recorder")

    def __init__(self, monitor: TrainingMonitor, phase: int) -> None:
        self._monitor = monitor
        self._recorder = monitor.recorder
        self._id = phase

    def __enter__(self) -> None:
        if Compiling.check():
            return
        try:
            self._recorder.push(self._id)
        except Exception as error:  # noqa: BLE001 — the guard of the loop, as in TrainingMonitor.step
            self._monitor.failed(error)

    def __exit__(self, *failure: object) -> None:
        if Compiling.check():
            return
        try:
            self._recorder.pop()
        except Exception as error:  # noqa: BLE001 — the same
            self._monitor.failed(error)


class MonitoredLoader:
    """An iterable around the user's loader that keeps its length and attributes."""

    def __init__(self, monitor: TrainingMonitor, batches: Iterable[Any]) -> None:
        self._monitor = monitor
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        self._monitor.claim()
        recorder = self._monitor.recorder
        if not recorder.stack:
            recorder.epoch()
        size = self._monitor.size
        counting = self._monitor.counts_batches
        asked = recorder.waiting()
        if is_dataloader(self._batches):
            source = self._monitor.loaders.started(self._batches, iter)
        else:
            source = iter(self._batches)
        while True:
            try:
                batch = next(source)
            except BaseException as end:
                recorder.exhausted(asked)
                if isinstance(end, StopIteration):
                    return
                raise
            try:
                recorder.arrived(asked, OTHER)
                if counting and asked:
                    recorder.count(*size.of(batch))
            except Exception as error:  # noqa: BLE001 — the guard of the loop, as in step()
                self._monitor.failed(error)
            yield batch
            asked = recorder.waiting()

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

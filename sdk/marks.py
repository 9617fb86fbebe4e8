"""The two things a loop holds in its hands: a phase to enter, and a loader to iterate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .guard import Compiling
from .loader import is_dataloader
from .phases import DATA, LIVE, OTHER, SHIFT
from .ring import H_LIVE
from .tape import clock

if TYPE_CHECKING:
    from .monitor import TrainingMonitor

_DATA, _OTHER = LIVE[DATA], LIVE[OTHER]


class Phase:
    """A named phase as a context manager. One object per name, entered as often as wanted."""

    __slots__ = ("_bits", "_monitor", "_recorder")

    def __init__(self, monitor: TrainingMonitor, bits: int) -> None:
        self._monitor = monitor
        self._recorder = monitor.recorder
        self._bits = bits

    def __enter__(self) -> None:
        if Compiling.check():
            return
        recorder = self._recorder
        if get_ident() == recorder.thread:
            now = clock()
            mark = now | self._bits
            recorder.stack.append(recorder.words[H_LIVE] >> SHIFT)
            recorder.append(mark)
            recorder.words[H_LIVE] = mark
            if now > recorder.horizon:
                recorder.play(now)

    def __exit__(self, *failure: object) -> None:
        if Compiling.check():
            return
        self._recorder.pop()


class MonitoredLoader:
    """An iterable around the user's loader that keeps its length and attributes."""

    def __init__(self, monitor: TrainingMonitor, batches: Iterable[Any]) -> None:
        self._monitor = monitor
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        """Waiting and its end are written out here, as `lap` is: every call more costs a microsecond."""
        self._monitor.claim()
        recorder = self._monitor.recorder
        if not recorder.stack:
            recorder.epoch()
        counting = self._monitor.counts_batches
        asked = recorder.waiting()
        source = self._source()
        while True:
            try:
                batch = next(source)
            except BaseException as end:
                recorder.exhausted(asked)
                if isinstance(end, StopIteration):
                    return
                raise
            if asked and recorder.on:
                now = clock()
                mark = now | _OTHER
                recorder.append(mark)
                recorder.words[H_LIVE] = mark
                if counting or recorder.device is not None:
                    self._look_at(batch, counting)
                if now > recorder.horizon:
                    recorder.play(now)
            yield batch
            asked = False
            if get_ident() == recorder.thread and not recorder.stack:
                asked = True
                now = clock()
                mark = now | _DATA
                recorder.append(mark)
                recorder.words[H_LIVE] = mark

    def _source(self) -> Iterator[Any]:
        if is_dataloader(self._batches):
            made: Iterator[Any] = self._monitor.loaders.started(self._batches, iter)
            return made
        return iter(self._batches)

    def _look_at(self, batch: Any, counting: bool) -> None:
        recorder = self._monitor.recorder
        try:
            if recorder.device is not None:
                recorder.device.begin()
            if counting:
                recorder.count(*self._monitor.size.of(batch))
        except Exception as error:  # noqa: BLE001 — a batch of any kind may come; training goes on
            self._monitor.failed(error)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

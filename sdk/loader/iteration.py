"""What `TrainingMonitor.loader()` returns: the user's loader, with its waits marked."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..loop.monitor import TrainingMonitor


class MonitoredLoader:
    """An iterable around the user's loader that keeps its length and attributes. A copy is monitored by the
    same monitor; a pickle is the user's loader alone, because another process has its own monitor or
    none."""

    def __init__(self, monitor: TrainingMonitor, batches: Iterable[Any]) -> None:
        self._monitor = monitor
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return self._monitor.session.iterate(self._batches)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name in ("_batches", "_monitor"):  # not set yet: created without __init__
            raise AttributeError(name)
        return getattr(self._batches, name)

    def __copy__(self) -> MonitoredLoader:
        return MonitoredLoader(self._monitor, copy.copy(self._batches))

    def __deepcopy__(self, memo: dict[int, Any]) -> MonitoredLoader:
        return MonitoredLoader(self._monitor, copy.deepcopy(self._batches, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._batches,)


def _itself(batches: Iterable[Any]) -> Iterable[Any]:
    return batches

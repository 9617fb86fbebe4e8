"""What it costs that each evaluation starts the workers of its loader anew."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ._timing import clock


class EvaluationStarts:
    """Adds up creating the iterator, the wait for its first batch, and its end, where workers are joined."""

    def __init__(self) -> None:
        self._count = self._ns = 0
        self._fresh: Callable[[], Any] = lambda: None
        """The newest iterator that started workers, if it still exists."""
        self._arrived = False
        """Its first batch is here."""

    def started(self, loader: Any, make_iterator: Callable[[Any], Any]) -> Any:
        if not loader.num_workers:
            return make_iterator(loader)
        had, began = getattr(loader, "_iterator", None), clock()
        iterator = make_iterator(loader)
        if iterator is not had:
            self._count += 1
            self._ns += clock() - began
            self._fresh, self._arrived = weakref.ref(iterator), False
        return iterator

    def timed(self, take: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`take` gives the next batch of an iterator; the first and the last call count."""

        def call(iterator: Any) -> Any:
            if iterator is not self._fresh():
                return take(iterator)
            began = clock()
            try:
                batch = take(iterator)
            except BaseException:
                self._ns += clock() - began
                raise
            if not self._arrived:
                self._arrived = True
                self._ns += clock() - began
            return batch

        return call

    def scalars(self) -> dict[str, float]:
        if not self._count:
            return {}
        return {
            "loader.evaluation_starts": float(self._count),
            "loader.evaluation_start_s": self._ns / self._count / 1e9,
        }

"""How many rows a forward pass takes at once: the batch of a loop that has no loader to tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

_FLAT = 2
"""Rows of features. With more dimensions the first may be time, and does not tell how much is computed."""


class Rows:
    """Known if all outermost modules take equally many, each once an update; else nothing is said: a policy
    that is asked step by step, or gradients that are accumulated, are no small batches."""

    def __init__(self) -> None:
        self._sizes: set[int] = set()
        self._calls: Counter[int] = Counter()
        self._once = True

    def passed(self, values: Iterable[Any]) -> None:
        """What a module is given for a training pass."""
        shape = next((shape for one in values if (shape := getattr(one, "shape", None)) is not None), ())
        self._sizes.add(int(shape[0]) if len(shape) == _FLAT else 0)

    def called(self, module: Any) -> None:
        self._calls[id(module)] += 1

    def updated(self) -> None:
        self._once = self._once and max(self._calls.values(), default=0) <= 1
        self._calls.clear()

    @property
    def known(self) -> int | None:
        same = len(self._sizes) == 1 and self._once
        return next(iter(self._sizes)) or None if same else None

"""How many rows a forward pass takes at once: the batch of a loop that has no loader to tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..probe.classes import torch_class

_FLAT = 2
"""Rows of features. With more dimensions the first may be time, and does not tell how much is computed."""
_BAG = "EmbeddingBag"


class Rows:
    """Known if all outermost modules take equally many, each once an update; else nothing is said: a policy
    that is asked step by step, or gradients that are accumulated, are no small batches."""

    def __init__(self) -> None:
        self._sizes: set[int] = set()
        self._calls: Counter[int] = Counter()
        self._once = True

    def passed(self, module: Any, values: Iterable[Any]) -> None:
        """What a module is given for a training pass."""
        first = next((one for one in values if hasattr(one, "is_floating_point")), None)
        if first is None or first.is_nested or first.dim() != _FLAT:
            self._sizes.add(0)
        else:
            self._sizes.add(int(first.shape[0]) * (1 if _is_row(module, first) else int(first.shape[1])))

    def called(self, module: Any) -> None:
        self._calls[id(module)] += 1

    def updated(self) -> None:
        self._once = self._once and max(self._calls.values(), default=0) <= 1
        self._calls.clear()

    @property
    def known(self) -> int | None:
        same = len(self._sizes) == 1 and self._once
        return next(iter(self._sizes)) or None if same else None


def _is_row(module: Any, tensor: Any) -> bool:
    """Whether a row is one sample: numbers are its features. Indices are a sequence, each of them computed by
    itself, unless a bag sums them first."""
    return bool(tensor.is_floating_point()) or torch_class(module) == _BAG

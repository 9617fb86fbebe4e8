"""Updates without an optimizer: was a parameter changed, or a gradient cleared, since the last backward?

torch counts in-place changes (`_version`); a cleared gradient is None or has changed. Updates through `.data`
are not counted, so we also compare the first values, but only on the CPU: reading from a device waits for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

ESTABLISHED = 3
"""Chosen: after this many manual updates and no optimizer step, they are how this script trains."""
_LEAVES = 4
"""Chosen: parameters to watch. One may be an input that needs a gradient and is never updated."""
_NODES = 2000
"""Chosen: graph nodes to search for them."""
_VALUES = 4
"""Chosen: values to compare in each."""


class HandUpdates:
    """Watches a few of the tensors that get gradients."""

    def __init__(self) -> None:
        self._watched: list[_Leaf] = []
        self.updates = 0

    @property
    def established(self) -> bool:
        return self.updates >= ESTABLISHED

    def find(self, tensors: Any) -> None:
        """A backward pass begins from these tensors: watch what will get gradients."""
        if not any(leaf.is_there() for leaf in self._watched):
            first = tensors if hasattr(tensors, "grad_fn") else next(iter(tensors or ()), None)
            self._watched = [_Leaf(found) for found in _leaves(getattr(first, "grad_fn", None))]

    def remember(self) -> None:
        """A backward pass is over."""
        for leaf in self._watched:
            leaf.remember()

    def seen(self) -> bool:
        """Whether there has been an update since the last backward pass."""
        return any(leaf.has_changed() for leaf in self._watched)


class _Leaf:
    """One tensor that gets gradients."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = weakref.ref(tensor)
        self._version = self._gradient = -1
        self._values: list[Any] | None = None

    def is_there(self) -> bool:
        return self._tensor() is not None

    def remember(self) -> None:
        tensor = self._tensor()
        if tensor is not None:
            self._version, self._gradient = tensor._version, _gradient(tensor)
            self._values = first_values(tensor)

    def has_changed(self) -> bool:
        tensor = self._tensor()
        if tensor is None or self._version < 0:
            return False
        if tensor._version != self._version or _gradient(tensor) != self._gradient:
            return True
        return self._values is not None and first_values(tensor) != self._values


def _gradient(tensor: Any) -> int:
    """How often its gradient has changed; -1: it has none."""
    return -1 if tensor.grad is None else int(tensor.grad._version)


def first_values(tensor: Any) -> list[Any] | None:
    """The first values, if reading them does not wait for a device."""
    if tensor.device.type != "cpu" or tensor.is_sparse:
        return None
    found: list[Any] = tensor.detach().reshape(-1)[:_VALUES].tolist()
    return found


def _leaves(node: Any) -> Iterator[Any]:
    """The first tensors that get gradients, found by a depth-first search of the graph."""
    waiting, seen, found = [node], set(), 0
    for _ in range(_NODES):
        if not waiting or found >= _LEAVES:
            return
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        tensor = getattr(node, "variable", None)
        if tensor is not None:
            found += 1
            yield tensor
        waiting += [one for one, _ in reversed(node.next_functions)]

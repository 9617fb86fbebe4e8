"""Updates without an optimizer: was a parameter changed, or a gradient cleared, since the last backward?

torch counts changes in place (`_version`); a gradient that is cleared is None or has been changed. An
update through `.data` is not counted: for that the first values are compared, on the CPU only, because
reading a device waits for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

ESTABLISHED = 3
"""A choice: so many updates by hand, and no optimizer so far, and they are how this script trains."""
_LEAVES = 4
"""A choice: parameters that are watched. One may be an input that needs a gradient and is never updated."""
_NODES = 2000
"""A choice: nodes of the graph that are searched for them."""
_VALUES = 4
"""A choice: values compared of each."""


class HandUpdates:
    """Watches a few of the tensors that get gradients."""

    def __init__(self) -> None:
        self._watched: list[_Leaf] = []
        self.updates = 0

    @property
    def established(self) -> bool:
        return self.updates >= ESTABLISHED

    def find(self, tensors: Any) -> None:
        """A backward pass begins from these: watch what will get gradients."""
        if not any(leaf.is_there() for leaf in self._watched):
            first = tensors if hasattr(tensors, "grad_fn") else next(iter(tensors or ()), None)
            self._watched = [_Leaf(found) for found in _leaves(getattr(first, "grad_fn", None))]

    def remember(self) -> None:
        """A backward pass is over."""
        for leaf in self._watched:
            leaf.remember()

    def seen(self) -> bool:
        """Whether there was an update since."""
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
            self._values = _values(tensor)

    def has_changed(self) -> bool:
        tensor = self._tensor()
        if tensor is None or self._version < 0:
            return False
        if tensor._version != self._version or _gradient(tensor) != self._gradient:
            return True
        return self._values is not None and _values(tensor) != self._values


def _gradient(tensor: Any) -> int:
    """Changes of its gradient; -1: it has none."""
    return -1 if tensor.grad is None else int(tensor.grad._version)


def _values(tensor: Any) -> list[Any] | None:
    """The first values, where reading them waits for nobody."""
    if tensor.device.type != "cpu" or tensor.is_sparse:
        return None
    found: list[Any] = tensor.detach().reshape(-1)[:_VALUES].tolist()
    return found


def _leaves(node: Any) -> Iterator[Any]:
    """The first tensors that get gradients, searched along the graph in depth."""
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

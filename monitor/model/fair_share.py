"""Sharing a limited number of places fairly: the owner with the most is cut first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fair_share(items: Sequence[T], owner: Callable[[T], Hashable], most: int) -> tuple[T, ...]:
    """At most `most` items, in their order: one of each owner, then a second of each, and so on."""
    if len(items) <= most:
        return tuple(items)
    turns: Counter[Hashable] = Counter()
    order: list[tuple[int, int]] = []
    for at, item in enumerate(items):
        who = owner(item)
        order.append((turns[who], at))
        turns[who] += 1
    return tuple(items[at] for at in sorted(at for _, at in sorted(order)[: max(0, most)]))

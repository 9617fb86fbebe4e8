"""Batches of rows of tensors in memory: torch takes them row by row, one indexing takes them whole."""

from __future__ import annotations

import sys
import time
from typing import Any

_LOOKS = 5
"""Chosen: batches taken to time it; tens to hundreds of microseconds each, once a loader. Their median
counts: a turn of another thread is longer than they are."""
_STRIDE = 7919
"""A prime: rows in an order that caches cannot foresee, without drawing a random number."""
_MOST_BYTES = 64 << 20
"""Chosen: a larger batch is not taken only to be timed."""


def takes_rows(data: Any) -> bool:
    """Whether a data set is a `TensorDataset` in host memory, or a subset of one: indexed with a list, it
    gives the very batch that its rows make."""
    kinds = sys.modules["torch.utils.data"]
    while type(data) is kinds.Subset:
        data = data.dataset
    return type(data) is kinds.TensorDataset and all(
        one.layout is sys.modules["torch"].strided and one.device.type == "cpu" and not one.requires_grad
        for one in data.tensors
    )


def collates_plainly(collate: Any) -> bool:
    """Whether rows are put together by torch's own function, timed by us or not."""
    own = sys.modules["torch.utils.data._utils.collate"].default_collate
    return getattr(collate, "function", collate) is own


def whole_batch_seconds(loader: Any) -> float | None:
    """What one indexing takes for a batch; None if its batches are not made of rows, or are whole already."""
    size, data = getattr(loader.batch_sampler, "batch_size", None), loader.dataset
    if not size or not collates_plainly(loader.collate_fn) or not takes_rows(data):
        return None
    rows = [(at * _STRIDE) % len(data) for at in range(min(size, len(data)))]
    if not rows or sum(one[0].nbytes for one in _tensors(data)) * len(rows) > _MOST_BYTES:
        return None
    data[rows]  # the first one of a process also makes what all later ones use
    batches = [[(row + at) % len(data) for row in rows] for at in range(1, _LOOKS + 1)]
    return sorted(_seconds(data, batch) for batch in batches)[_LOOKS // 2]


def _seconds(data: Any, batch: list[int]) -> float:
    began = time.perf_counter()
    data[batch]
    return time.perf_counter() - began


def _tensors(data: Any) -> tuple[Any, ...]:
    while not hasattr(data, "tensors"):
        data = data.dataset
    tensors: tuple[Any, ...] = data.tensors
    return tensors

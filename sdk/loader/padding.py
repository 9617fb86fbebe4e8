"""How much of a batch of token ids is padding that every row has: columns nothing depends on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

BATCHES = 12
"""Chosen: batches looked at; one look costs tens of microseconds."""
LEAST_WIDTH, LEAST_ROWS = 16, 2
_DEPTH, _FIRST_PARTS = 4, 8
"""Chosen: how deep to look for the ids, and how many items of a list."""


class Padding:
    """Of the first batches: the share of columns at one end that hold one and the same number in all rows."""

    def __init__(self) -> None:
        self._left = BATCHES
        self._spare: list[int] = []
        self._widths: set[int] = set()

    def see(self, batch: Any) -> None:
        """Look at a batch in host memory."""
        if self._left <= 0:
            return
        self._left -= 1
        ids = next(_ids(batch, sys.modules.get("torch"), _DEPTH), None)
        if ids is None:
            self._left = 0  # batches are alike: this loop has no ids
            return
        self._widths.add(int(ids.shape[1]))
        self._spare.append(max(_run(ids), _run(ids.flip(1))))

    @property
    def looks(self) -> bool:
        """Whether it wants to see more batches."""
        return self._left > 0

    @property
    def share(self) -> float | None:
        """Mean share of the columns; None unless all batches are equally wide and how much they fill differs:
        columns that never change are no padding but part of the data."""
        if len(self._spare) < BATCHES // 2 or len(self._widths) != 1 or len(set(self._spare)) < 2:
            return None
        return sum(self._spare) / len(self._spare) / next(iter(self._widths))


def _run(ids: Any) -> int:
    """Columns at the end that all hold the number most rows end with; 0 if that number is elsewhere, too: it
    fills a table of flags, or the rows end with a real id."""
    fills = ids == ids[:, -1].mode().values
    if not bool((fills[:, 1:] >= fills[:, :-1]).all()):
        return 0
    return int(fills.all(0).sum())


def _ids(part: Any, torch: Any, depth: int) -> Iterator[Any]:
    """Tensors of whole numbers that are rows of a sequence, in host memory."""
    if torch is None or depth < 0:
        return
    if isinstance(part, torch.Tensor):
        plain = part.layout == torch.strided and part.device.type == "cpu" and not part.is_nested
        whole = plain and part.dtype in (torch.int64, torch.int32) and part.dim() == 2
        if whole and part.shape[0] >= LEAST_ROWS and part.shape[1] >= LEAST_WIDTH:
            yield part
    elif isinstance(part, Mapping):
        for one in part.values():
            yield from _ids(one, torch, depth - 1)
    elif isinstance(part, list | tuple):
        for one in part[:_FIRST_PARTS]:
            yield from _ids(one, torch, depth - 1)

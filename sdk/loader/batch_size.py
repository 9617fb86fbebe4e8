"""How many samples and tokens a batch has, from its first tensor, without a copy or a sync."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .padding import Padding

if TYPE_CHECKING:
    from ..loop.session import Session

_DEPTH = 4
"""Chosen: how many containers deep to look for a batch's first tensor."""
_FIRST_PARTS = 8
"""Chosen: how many items of a list or tuple to search for it."""
_MAX_SHAPES = 64
"""Chosen: with more distinct shapes than this, they may as well all differ."""


class BatchSize:
    """Finds the first tensor once and then goes straight to it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._path: tuple[Any, ...] | None = None
        self._tokens: tuple[Any, ...] | None = None
        self._last: Any = None
        self._padding = Padding()
        self.shapes: set[tuple[int, ...]] = set()
        """Shapes seen of the first tensor, without the batch dimension; at most `_MAX_SHAPES`."""
        self.rows: int | None = None
        """What the model takes at once. It tells the batch of a loop whose batches nobody saw, and whether a
        sample has several rows."""

    def of(self, batch: Any) -> tuple[int, int]:
        """(samples, tokens); 0: unknown."""
        try:
            self._padding.see(batch)
            if self._path is None:
                self._find(batch)
            samples = self._samples(_follow(batch, self._path).shape) if self._path is not None else 0
            tokens = int(_follow(batch, self._tokens).numel()) if self._tokens else 0
        except (LookupError, AttributeError, TypeError):
            self._path = None
            return self._session.batch_size or 0, 0
        return samples, tokens

    @property
    def path(self) -> tuple[Any, ...] | None:
        """Path to the first tensor, if its length is all there is to look at."""
        return None if self._tokens or self._padding.looks else self._path

    def _samples(self, shape: Any) -> int:
        if shape != self._last:
            self._last = shape
            if len(self.shapes) < _MAX_SHAPES:
                self.shapes.add(tuple(int(size) for size in shape[1:]))
        return int(shape[0])

    def _find(self, batch: Any) -> None:
        self._path = _first_tensor(batch, ())
        if isinstance(batch, Mapping) and hasattr(batch.get("input_ids"), "numel"):
            self._tokens = ("input_ids",)
        if self._path is not None and self._session.batch_size is None:
            self._session.set_batch_size(int(_follow(batch, self._path).shape[0]))

    def config(self) -> dict[str, Any] | None:
        """The probe's `shapes` part."""
        known: dict[str, Any] = {"rows": self.rows} if self.rows else {}
        if not self.shapes:
            return known or None
        spare = self._padding.share
        if spare is not None:
            known["spare"] = round(spare, 3)
        return {"fixed": len(self.shapes) == 1, "distinct": len(self.shapes), **known}


def _follow(batch: Any, path: tuple[Any, ...] | None) -> Any:
    for key in path or ():
        batch = batch[key]
    return batch


def _first_tensor(batch: Any, path: tuple[Any, ...]) -> tuple[Any, ...] | None:
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return path if len(shape) else None
    if len(path) >= _DEPTH:
        return None
    if isinstance(batch, Mapping):
        parts: Any = batch.items()
    elif isinstance(batch, (list, tuple)):
        parts = enumerate(batch[:_FIRST_PARTS])
    else:
        return None
    for key, part in parts:
        found = _first_tensor(part, (*path, key))
        if found is not None:
            return found
    return None

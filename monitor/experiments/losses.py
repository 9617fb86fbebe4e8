"""Are the losses of two trials the same, the same up to rounding, or not?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

Same = Literal["equal", "rounding", "differ", "unknown"]
FIRST = 10
"""Losses that must agree: later ones drift apart by rounding alone, because training amplifies it."""
ROUNDING = 1e-3
"""A choice: how far they may, relative to the larger. Single precision gives 1e-6 in a pass; TF32 1e-3."""


class Agreement(msgspec.Struct, frozen=True):
    """Of two lists of losses over the steps both made."""

    same: Same
    compared: int = 0
    largest: float | None = None
    """The largest relative difference among the first; None where one of two losses is not a number."""


def agreement(one: Sequence[float], other: Sequence[float]) -> Agreement:
    pairs = list(zip(one, other, strict=False))
    if not pairs:
        return Agreement("unknown")
    if all(_equal(*pair) for pair in pairs):
        return Agreement("equal", len(pairs), 0.0)
    largest = max(_difference(*pair) for pair in pairs[:FIRST])
    same: Same = "rounding" if largest <= ROUNDING else "differ"
    return Agreement(same, len(pairs), largest if math.isfinite(largest) else None)


def _equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _difference(one: float, other: float) -> float:
    if _equal(one, other):
        return 0.0
    found = abs(one - other) / max(abs(one), abs(other), 1e-6)
    return found if math.isfinite(found) else math.inf

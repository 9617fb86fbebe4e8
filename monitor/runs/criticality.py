"""The slopes of a run that was probed, from the blocks of delays its meta lists."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import msgspec

from monitor.model.criticality import CLEAR, Criticality
from sdk.delays.slope import LEAST_BLOCKS, slope, spread

MOST_BLOCKS, MOST_PLACES, LONGEST_NAME = 64, 16, 32
"""What a ring may claim: it is written by others."""
MOST_VALUE = 1e6
STEPS_DIGITS = 2


class Probed(msgspec.Struct, frozen=True):
    """What the meta says about one place."""

    long: tuple[tuple[float, float], ...] = ()
    short: tuple[tuple[float, float], ...] = ()
    delays: int = 0
    seconds: float = 0.0

    @property
    def blocks(self) -> int:
        """Of the kind with fewer."""
        return min(len(self.long), len(self.short))

    @property
    def is_sound(self) -> bool:
        values = [value for point in (*self.long, *self.short) for value in point]
        return (
            max(len(self.long), len(self.short)) <= MOST_BLOCKS
            and all(math.isfinite(one) and abs(one) < MOST_VALUE for one in values)
            and 0 <= self.delays < 1 << 53
            and 0.0 <= self.seconds < MOST_VALUE
        )


Places = tuple[tuple[str, Probed], ...]


def read_places(raw: Any) -> Places:
    """From the meta; nothing where it is not what a probe writes."""
    try:
        found = msgspec.convert(raw, dict[str, Probed]) if isinstance(raw, dict) else {}
    except (msgspec.ValidationError, OverflowError):
        return ()
    sound = [(name, one) for name, one in found.items() if name.isidentifier() and one.is_sound]
    return tuple((name[:LONGEST_NAME], one) for name, one in sound[:MOST_PLACES])


def criticality(places: Places, steps: int) -> tuple[Criticality, ...]:
    return tuple(_place(name, probed, steps) for name, probed in places)


def _place(name: str, probed: Probed, steps: int) -> Criticality:
    found = Criticality(name, probed.delays, probed.seconds)
    known = _slope(probed)
    if known is None:
        needed = LEAST_BLOCKS / probed.blocks if 0 < probed.blocks < LEAST_BLOCKS else 1.0
        return msgspec.structs.replace(found, more_steps=_more(steps, needed))
    likely, error, margin = known
    more = _more(steps, (error / CLEAR) ** 2)
    return msgspec.structs.replace(found, slope=likely, error=error, margin=margin, more_steps=more)


@lru_cache(maxsize=256)
def _slope(probed: Probed) -> tuple[float, float, float] | None:
    """Slope, error and margin: worked out once for the same blocks."""
    likely = slope(probed.long, probed.short)
    return None if likely is None else (likely, *spread(probed.long, probed.short))


def _more(steps: int, times: float) -> int | None:
    """Blocks come at an even pace: so many times the steps so far, and to two digits."""
    more = steps * (times - 1.0)
    if not 1.0 <= more < 1 << 53:
        return None
    unit = 10 ** max(0, math.floor(math.log10(more)) - STEPS_DIGITS + 1)
    return int(math.ceil(more / unit) * unit)

"""The states of the random generators that code of samples draws from.

A library's transforms are not read as the user's own lines are; that they drew shows in the generators.
These are compared for one batch, which takes tens of microseconds, and never changed.
"""

from __future__ import annotations

import random
import sys
from typing import Any


def states() -> tuple[Any, ...]:
    """Of Python's own, torch's and NumPy's generators, as far as these are imported."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy.random")
    drawn: list[Any] = [random.getstate()]
    if torch is not None:
        drawn.append(torch.get_rng_state().tolist())
    if numpy is not None:
        drawn.append([one.tobytes() if hasattr(one, "tobytes") else one for one in numpy.get_state()])
    return tuple(drawn)

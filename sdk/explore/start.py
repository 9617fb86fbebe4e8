"""Begin to explore in this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..knobs.hooks import after_optimizer
from .explorer import Candidate, Explorer

NAME = "explored"
"""In the configuration of a run: what stays on, and what that brings."""


def is_one_of_several() -> bool:
    """Ranks that wait for one another are left alone: what one of them tries, all of them feel."""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1")


def explore(
    torch: Any,
    session: Any,
    steps: Callable[[], int],
    given: Sequence[Candidate] | None = None,
    changed: Callable[[], None] = lambda: None,
    before: float | None = None,
) -> Explorer | None:
    """Search, or compare the settings that are given, and in force, with none; `changed` is called whenever
    something was found. `before`: seconds of a step without them, if known."""
    if is_one_of_several():
        return None

    def tell(found: dict[str, Any]) -> None:
        session.probe.note(NAME, {key: found[key] for key in ("stays", "together")})
        changed()

    explorer = Explorer(torch, steps, given, tell, before)
    tell(explorer.told())

    def stepped(optimizer: Any) -> None:
        if session.meta.get("world") in (None, 1):  # known by the first backward pass
            explorer.stepped(optimizer, time.monotonic_ns())

    after_optimizer(stepped)
    return explorer

"""A second opinion on where the time of a step goes: clock stamps at the framework's own functions.

A stamp says which phase begins; it lasts until the next one. Nothing of gpumon is in it.
"""

from __future__ import annotations

import functools
import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REST = "rest"
"""Everything that is none of the phases below: a framework's own work, loops, metrics, logging."""
PHASES = ("data", "forward", "backward", "optimizer", "validate", "checkpoint", "rollout")


class Reference:
    """Stamps of one process."""

    def __init__(self) -> None:
        self._stamps: list[tuple[int, str]] = []
        self._open = REST
        self._whole = 0
        self.updates = 0
        """Optimizer steps made."""

    def mark(self, phase: str) -> str:
        """From here on it is `phase`; gives what it was."""
        before, self._open = self._open, phase
        if not self._whole:
            self._stamps.append((time.monotonic_ns(), phase))
        return before

    def begins(self, owner: Any, name: str, phase: str) -> None:
        """A call of `owner.name` begins a phase, which outlasts the call."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.mark(phase)
            return original(*args, **kwargs)

        setattr(owner, name, call)

    def during(self, owner: Any, name: str, phase: str, then: str | None = None, whole: bool = False) -> None:
        """A call of `owner.name` is a phase; `then` follows, else what was before. `whole`: whatever is
        called inside it is part of it."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            before = self.mark(phase)
            self.updates += phase == "optimizer"
            self._whole += whole
            try:
                return original(*args, **kwargs)
            finally:
                self._whole -= whole
                self.mark(then or before)

        setattr(owner, name, call)

    def batches(self, loader: Any) -> Iterator[Any]:
        """Iterate a loader; waiting is `data`."""
        self.mark("data")
        for batch in loader:
            self.mark(REST)
            yield batch
            self.mark("data")
        self.mark(REST)

    def save(self, path: Path) -> None:
        self.mark(REST)
        path.write_text(json.dumps({"updates": self.updates, "stamps": self._stamps}))


def shares(stamps: list[tuple[int, str]], steps: list[tuple[int, int]]) -> dict[str, float]:
    """Phase → its share of the time of these steps, given as begin and end in order."""
    spent = dict.fromkeys((*PHASES, REST), 0)
    times = [at for at, _ in stamps]
    for begin, end in steps:
        first = max(0, bisect_right(times, begin) - 1)
        for number in range(first, len(stamps)):
            at, phase = stamps[number]
            if at >= end:
                break
            until = times[number + 1] if number + 1 < len(times) else end
            spent[phase] += max(0, min(until, end) - max(at, begin))
    total = max(1, sum(end - begin for begin, end in steps))
    return {phase: ns / total for phase, ns in spent.items()}


Program = Callable[[Reference, bool], None]
"""Trains; the second argument says whether gpumon's callback (or marks) is to be used."""

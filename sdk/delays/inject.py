"""Puts short delays into one place of the loop, as a plan has it, and remembers them.

A delay is a sleep: it takes time from the loop and a core from nobody. Its real length is what counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..auto.patch import replace
from .plan import Plan


class Delays:
    """The delays of one process."""

    def __init__(self, steps: Callable[[], int | None], budget: float) -> None:
        self._steps = steps
        self._plan = Plan(budget)
        self._step = 0
        self._due = ""
        """Where this step is still to be delayed."""
        self.made: list[tuple[int, str, int]] = []
        """Number of the step, place, ns."""

    def install(self, torch: Any, after_step: Callable[[Callable[[], None]], None]) -> None:
        loader = torch.utils.data.dataloader._BaseDataLoaderIter
        replace(loader, "__next__", self._behind("data"))
        replace(torch.autograd, "backward", self._before("backward"))
        after_step(lambda: self.at("optimizer"))

    def _behind(self, place: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                found = original(*args, **kwargs)
                self.at(place)
                return found

            return call

        return make

    def _before(self, place: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                self.at(place)
                return original(*args, **kwargs)

            return call

        return make

    def at(self, place: str) -> None:
        """This place of the loop is passed: delay it, if this step is one of those. Once in a step."""
        steps = self._steps()
        if steps is None:
            return
        if steps + 1 != self._step:
            self._step = step = steps + 1
            self._due = self._plan.step(step, time.monotonic_ns())
        if place == self._due:
            self._due = ""
            self._delay(place)

    def _delay(self, place: str) -> None:
        began = time.monotonic_ns()
        time.sleep(self._plan.length_ns() / 1e9)
        took = time.monotonic_ns() - began
        self._plan.delayed(took)
        self.made.append((self._step, place, took))

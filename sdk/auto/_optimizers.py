"""Which optimizers make up a step of this training, and whether another training has begun."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from itertools import islice
from typing import Any

_PARAMETERS = 64
"""Chosen: how many parameters to compare to tell whether two optimizers share them."""
_SHORT, _SHORT_NS, _MOST_SHORT = 50, 3_000_000_000, 8
"""Chosen: a training of fewer steps, or over sooner, is too short to be judged by itself. After so many in a
row that are alike (rounds of federated learning, trials of a search), the next ones are rounds of one
training. Optimizers that were all made before the first step take turns in one training, unless the first has
made more steps than this."""


class KnownOptimizers:
    """Each optimizer steps at most once per step. They are known by `id`, forgotten with the object."""

    def __init__(self, gone: Callable[[int], None]) -> None:
        self._gone = gone
        self._seen: dict[int, weakref.ref[Any]] = {}
        self._known: set[int] = set()
        self._in_step: set[int] = set()
        self.made_first: list[weakref.ref[Any]] = []
        """Optimizers made before the first step."""
        self._former: list[weakref.ref[Any]] = []
        """Optimizers of trainings that seemed to be over."""
        self._in_turns = False
        """One of these has stepped again: what seemed to be several trainings is one."""
        self._trained: dict[int, weakref.ref[Any]] = {}
        """Some parameters of the known optimizers."""
        self._shapes: list[tuple[int, ...]] = []
        """What they looked like."""
        self._short = self._began = 0
        """Short trainings in a row, all alike, and the step at which the present one began."""
        self._began_ns = time.monotonic_ns()

    def begin_step(self, *stepped: int) -> None:
        """A new step begins, in which these have stepped."""
        self._in_step = set(stepped)

    def in_step(self, optimizer: Any) -> bool:
        return id(optimizer) in self._in_step

    def is_alone_in_step(self) -> bool:
        return len(self._in_step) == 1

    def is_known(self, optimizer: Any) -> bool:
        return id(optimizer) in self._known

    def stepped(self, optimizer: Any) -> None:
        self._in_step.add(id(optimizer))
        if id(optimizer) not in self._seen:
            self._seen[id(optimizer)] = weakref.ref(optimizer, self._forgetter(id(optimizer)))

    def confirm(self) -> None:
        """This step's optimizers are the training's."""
        self._known |= self._in_step
        self._shapes = self._shapes_in_step()
        for optimizer in self._alive(self._in_step):
            for parameter in _parameters(optimizer)[:_PARAMETERS]:
                self._trained[id(parameter)] = weakref.ref(parameter)

    def trains(self, parameter: Any) -> bool:
        """Whether an optimizer that has stepped has this parameter."""
        if _is_among(parameter, self._trained):
            return True
        return any(parameter is one for seen in self._alive(set(self._seen)) for one in _parameters(seen))

    def is_other_training(self, steps: int) -> bool:
        """Whether this step's optimizers are all new, train nothing trained before, and take no turns with
        the known ones, which have made so many steps."""
        if not self._trained or self._in_step & self._known or self._take_turns(steps):
            return False
        found = [one for optimizer in self._alive(self._in_step) for one in _parameters(optimizer)]
        return bool(found) and not any(_is_among(one, self._trained) for one in found)

    def _take_turns(self, steps: int) -> bool:
        own = self._alive(self._in_step)
        self._in_turns = self._in_turns or _has_any(self._former, own)
        return self._in_turns or (self._is_short(steps) and _has_any(self.made_first, own))

    def _is_short(self, steps: int) -> bool:
        return steps - self._began < _SHORT or time.monotonic_ns() - self._began_ns < _SHORT_NS

    def is_round(self, steps: int) -> bool:
        """Whether another training that begins after so many steps is one more of many short ones alike."""
        alike = self._is_short(steps) and self._shapes_in_step() == self._shapes
        self._began_ns = time.monotonic_ns()
        self._short = self._short + 1 if alike else 0
        joined = self._short >= _MOST_SHORT
        self._began = steps if joined else 0
        return joined

    def _shapes_in_step(self) -> list[tuple[int, ...]]:
        found = (one for optimizer in self._alive(self._in_step) for one in _parameters(optimizer))
        return [tuple(one.shape) for one in islice(found, _PARAMETERS)]

    def forget_all(self) -> None:
        """The known optimizers belong to a training that is over; keep those that step now."""
        self._former += [self._seen[one] for one in self._known if one in self._seen]
        self._known = set()
        self._trained = {}
        self._seen = {one: ref for one, ref in self._seen.items() if one in self._in_step}

    def _alive(self, wanted: set[int]) -> list[Any]:
        found = (self._seen[one]() for one in wanted if one in self._seen)
        return [optimizer for optimizer in found if optimizer is not None]

    def _forgetter(self, number: int) -> Callable[[Any], None]:
        """What runs when an optimizer is freed; it must not keep the table alive."""
        table = weakref.ref(self)

        def forget(_: Any) -> None:
            known = table()
            if known is not None:
                known._forget(number)

        return forget

    def _forget(self, number: int) -> None:
        self._former = [one for one in self._former if one() is not None]
        self._seen.pop(number, None)
        self._known.discard(number)
        self._in_step.discard(number)
        self._gone(number)


def has_gradients(optimizer: Any) -> bool:
    return any(one.grad is not None for one in _parameters(optimizer))


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _has_any(references: list[weakref.ref[Any]], wanted: list[Any]) -> bool:
    return any(reference() is one for reference in references for one in wanted)


def _is_among(parameter: Any, known: dict[int, weakref.ref[Any]]) -> bool:
    found = known.get(id(parameter))
    return found is not None and found() is parameter

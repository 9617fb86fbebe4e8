"""Knobs of the process: threads, cores, garbage collection, the allocator."""

from __future__ import annotations

import gc
import inspect
import os
from collections.abc import Callable
from typing import Any

from ..auto.patch import replace
from .hooks import after_first_step
from .knob import ROUNDING, Flip, Knob, Number, Outcome, Place, Switch, switched_on


class Threads(Number):
    """torch's compute threads; what the script asks for itself is not heard any more."""

    name = "threads.torch"
    written = "torch.set_num_threads({value}), or OMP_NUM_THREADS={value}"
    takes = "1, 2, …"
    effect = ROUNDING
    least, most = 1, 1024

    def apply(self, place: Place, value: int, outcome: Outcome) -> Flip | None:
        """Before the first parallel region: threads that were made once stay."""
        return switched_on(self._switch(place, value, outcome))

    def live(self, place: Place, value: int, outcome: Outcome) -> Flip | None:
        if place.torch.get_num_threads() == value:
            outcome.already(f"there are {value}")
            return None
        return self._switch(place, value, outcome)

    def _switch(self, place: Place, value: int, outcome: Outcome) -> Flip:
        """Several counts may be tried in one process: each goes back to what it found."""
        torch, heard, process = place.torch, place.torch.set_num_threads, os.getpid()
        change: Callable[[int], None] = inspect.unwrap(heard)
        found, is_on = torch.get_num_threads(), False

        def ask(count: int) -> None:
            nonlocal found
            if os.getpid() != process or not is_on:  # a loader's worker asks for one thread, and has one
                heard(count)
            else:
                found = count
                say(count)

        def say(count: int) -> None:
            (outcome.already if count == value else outcome.applied)(f"{count} → {value}")

        def flip(on: bool) -> None:
            nonlocal found, is_on
            found = torch.get_num_threads() if on and not is_on else found
            is_on = on
            change(value if on else found)

        say(found)
        replace(torch, "set_num_threads", lambda original: ask)
        return flip


class Affinity(Knob):
    name = "cpu.affinity"
    written = "taskset -c {value} python …"
    takes = "cores, as 0-3,8"

    def read(self, text: str) -> set[int]:
        try:
            return {core for part in text.split(",") for core in _cores(part)}
        except ValueError:
            raise ValueError(f"{self.name} is a list of cores such as 0-3,8, not {text}") from None

    def apply(self, place: Place, value: set[int], outcome: Outcome) -> None:
        """After torch has counted its threads: their number stays."""
        try:
            os.sched_setaffinity(0, value)
        except (AttributeError, OSError) as error:
            return outcome.refused(f"this machine does not allow it: {error}")
        return outcome.applied(f"{len(value)} cores")


def _cores(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


class Collect(Switch):
    """Calls of `gc.collect` by the script; Python's own collections go on."""

    name = "gc.collect"
    written = "no gc.collect() in the loop"
    takes = "off"
    only = False
    needs = "the script did not call `gc.collect`"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        return self._skip(place, outcome, [True])

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        return self._skip(place, outcome, [False])

    def _skip(self, place: Place, outcome: Outcome, on: list[bool]) -> Flip:
        def skip(original: Any) -> Any:
            def collect(*args: Any, **kwargs: Any) -> int:
                if not place.steps():
                    return int(original(*args, **kwargs))
                outcome.applied("collections the script asks for are left out")
                return 0 if on[0] else int(original(*args, **kwargs))

            return collect

        replace(gc, "collect", skip)
        return lambda wanted: on.__setitem__(0, wanted)


class Freeze(Switch):
    """What exists after the first step is never looked at again by the garbage collector."""

    name = "gc.freeze"
    written = "gc.collect(); gc.freeze() after the first step"
    only = True
    needs = "no step was made"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        def freeze() -> None:
            gc.collect()
            gc.freeze()
            outcome.applied(f"{gc.get_freeze_count()} objects")

        after_first_step(freeze)
        return _freeze

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        outcome.applied("what exists by now")
        return _freeze


def _freeze(on: bool) -> None:
    (gc.freeze if on else gc.unfreeze)()


class Threshold(Number):
    name = "gc.threshold"
    written = "gc.set_threshold({value})"
    takes = "objects between two collections, as 50000"

    def apply(self, place: Place, value: int, outcome: Outcome) -> Flip | None:
        return switched_on(self.live(place, value, outcome))

    def live(self, place: Place, value: int, outcome: Outcome) -> Flip:
        before = gc.get_threshold()
        (outcome.already if before[0] == value else outcome.applied)(f"{before[0]} → {value}")
        return lambda on: gc.set_threshold(value if on else before[0], *before[1:])


class Allocator(Knob):
    name = "allocator.conf"
    written = "PYTORCH_CUDA_ALLOC_CONF={value} in the environment"
    takes = "as PYTORCH_CUDA_ALLOC_CONF, for example expandable_segments:True"

    def read(self, text: str) -> str:
        if ":" not in text:
            raise ValueError(f"{self.name} is option:value, not {text}")
        return text

    def before_torch(self, value: str) -> None:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = value

    def apply(self, place: Place, value: str, outcome: Outcome) -> None:
        if place.torch.cuda.is_available():
            outcome.applied(value)
        else:
            outcome.refused("torch sees no CUDA device here")


class EmptyCache(Switch):
    """Calls of `torch.cuda.empty_cache` by the script."""

    name = "allocator.empty_cache"
    written = "no torch.cuda.empty_cache() in the loop"
    takes = "off"
    only = False
    needs = "the script did not call `torch.cuda.empty_cache` on a device"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        def skip(original: Any) -> Any:
            def empty_cache() -> None:
                if place.torch.cuda.is_initialized():
                    outcome.applied("the allocator keeps its memory")

            return empty_cache

        replace(place.torch.cuda, "empty_cache", skip)

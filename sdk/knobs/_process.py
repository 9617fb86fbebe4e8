"""Knobs of the process: threads, cores, garbage collection, the allocator."""

from __future__ import annotations

import gc
import os
from typing import Any

from ..auto.patch import replace
from .hooks import after_first_step
from .knob import ROUNDING, Flip, Knob, Number, Outcome, Place, Switch


class Threads(Number):
    """torch's compute threads; what the script asks for itself is not heard any more."""

    name = "threads.torch"
    written = "torch.set_num_threads({value}), or OMP_NUM_THREADS={value}"
    takes = "1, 2, …"
    effect = ROUNDING
    least, most = 1, 1024

    def apply(self, place: Place, value: int, outcome: Outcome) -> None:
        before = place.torch.get_num_threads()
        place.torch.set_num_threads(value)
        replace(place.torch, "set_num_threads", lambda original: lambda count: None)
        (outcome.already if before == value else outcome.applied)(f"{before} → {value}")

    def live(self, place: Place, value: int, outcome: Outcome) -> Flip | None:
        torch, before = place.torch, place.torch.get_num_threads()
        if before == value:
            outcome.already(f"there are {value}")
            return None
        outcome.applied(f"{before} → {value}")

        def flip(on: bool) -> None:
            nonlocal before
            before = torch.get_num_threads() if on else before
            torch.set_num_threads(value if on else before)

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

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        self._skip(place, outcome, [True])

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        on = [False]
        self._skip(place, outcome, on)
        return lambda wanted: on.__setitem__(0, wanted)

    def _skip(self, place: Place, outcome: Outcome, on: list[bool]) -> None:
        def skip(original: Any) -> Any:
            def collect(*args: Any, **kwargs: Any) -> int:
                if not place.steps():
                    return int(original(*args, **kwargs))
                outcome.applied("collections the script asks for are left out")
                return 0 if on[0] else int(original(*args, **kwargs))

            return collect

        replace(gc, "collect", skip)


class Freeze(Switch):
    """What exists after the first step is never looked at again by the garbage collector."""

    name = "gc.freeze"
    written = "gc.collect(); gc.freeze() after the first step"
    only = True
    needs = "no step was made"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        def freeze() -> None:
            gc.collect()
            gc.freeze()
            outcome.applied(f"{gc.get_freeze_count()} objects")

        after_first_step(freeze)

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        outcome.applied("what exists by now")
        return lambda on: gc.freeze() if on else gc.unfreeze()


class Threshold(Number):
    name = "gc.threshold"
    written = "gc.set_threshold({value})"
    takes = "objects between two collections, as 50000"

    def apply(self, place: Place, value: int, outcome: Outcome) -> None:
        before = gc.get_threshold()
        gc.set_threshold(value, *before[1:])
        (outcome.already if before[0] == value else outcome.applied)(f"{before[0]} → {value}")

    def live(self, place: Place, value: int, outcome: Outcome) -> Flip:
        before = gc.get_threshold()
        outcome.applied(f"{before[0]} → {value}")
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

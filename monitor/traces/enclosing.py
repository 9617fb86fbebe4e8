"""Which operator, annotation and Python function a host thread is in at a given moment."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from msgspec import Struct

from monitor.traces.trace import Range, Thread
from monitor.traces.window import STEP

FRAME = re.compile(r"^(?P<path>[^<>]*\.py)\(\d+\): ")
"""Kineto's name for a Python function: file(line): name."""
NOT_OWN = ("/site-packages/torch/", "/dist-packages/torch/", "/lib/python3")


class Place(Struct, frozen=True):
    operator: str | None = None
    where: str | None = None


Moment = tuple[Thread, int]


def places(moments: Sequence[Moment], ranges: Iterable[Range]) -> list[Place]:
    """The place of each moment, in the order given."""
    by_thread: dict[Thread, list[Range]] = {thread: [] for thread, _ in moments}
    for one in ranges:
        if one.thread in by_thread:
            by_thread[one.thread].append(one)
    for found in by_thread.values():
        found.sort(key=lambda one: (one.begin, -one.end))
    sweeps = {thread: _Sweep(found) for thread, found in by_thread.items()}
    answers = {}
    for at in sorted(range(len(moments)), key=lambda at: moments[at][1]):
        thread, moment = moments[at]
        answers[at] = _place(sweeps[thread].at(moment))
    return [answers[at] for at in range(len(moments))]


class _Sweep:
    """Walks one thread's ranges once, for moments queried in ascending order."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        self._ranges = ranges
        self._next = 0
        self._open: list[Range] = []

    def at(self, moment: int) -> list[Range]:
        """The ranges around a moment, outermost first."""
        while self._next < len(self._ranges) and self._ranges[self._next].begin <= moment:
            self._close(self._ranges[self._next].begin)
            self._open.append(self._ranges[self._next])
            self._next += 1
        self._close(moment)
        return [one for one in self._open if one.end > moment]  # an annotation may outlive its function

    def _close(self, moment: int) -> None:
        while self._open and self._open[-1].end <= moment:
            self._open.pop()


def _place(around: Sequence[Range]) -> Place:
    operators = [one for one in around if one.kind == "op"]
    functions = [one.name for one in reversed(around) if one.kind == "python"]
    stacks = [frame for one in reversed(operators) for frame in one.stack.split(";")]
    notes = [one.name for one in reversed(around) if one.kind == "annotation" and not STEP.match(one.name)]
    own = (frame for frame in (*functions, *stacks) if is_own_code(frame))
    return Place(
        operator=operators[0].name if operators else None,
        where=next(own, None) or next(iter(notes), None),
    )


def is_own_code(frame: str) -> bool:
    """Whether a frame belongs to neither torch, the standard library nor a built-in."""
    match = FRAME.match(frame.strip())
    if match is None:
        return False
    path = match["path"].replace("\\", "/")
    package = path.partition("/")[0].removesuffix(".py")
    return (
        package != "torch"
        and package not in sys.stdlib_module_names
        and not any(part in path for part in NOT_OWN)
    )

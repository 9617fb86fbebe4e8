"""The stack samplers: the C one if it was built, else one that uses `faulthandler`.

Both run in their own thread and return raw samples: (phase, ns, ns on a core, ns waiting for one, time, when
it was read, stack). Stacks are decoded later, by `Lines`, when the loop is not being watched.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from bisect import bisect_right
from types import CodeType
from typing import Any, Protocol

from ..structure.files import is_user_file
from ._late import Code
from ._stacks import Frame, StackReader, parse
from ._thread_clock import ThreadClock
from .budget import SHARE

RawSample = tuple[int, int, int, int, int, int, Any]
EXACT, CHECKED, LATE = range(3)
"""When a stack was read: at the tick, at the interpreter's next check for requests, or some time later."""
_LOWEST_SWITCH_S = 0.0005
"""Chosen: shortest interval at which a thread waiting for the interpreter lock asks for it."""


class Subject(Protocol):
    """What is sampled: `phase` is a number, negative when there is nothing to sample."""

    @property
    def phase(self) -> int: ...


class Stretch(Protocol):
    """A time in which another phase went on than was known then."""

    @property
    def began(self) -> int: ...
    @property
    def ended(self) -> int: ...
    @property
    def phase(self) -> int: ...


class Sampler(Protocol):
    """Samples one thread; `run` is called in a separate thread."""

    @property
    def spent_ns(self) -> int: ...
    @property
    def taken(self) -> int: ...

    def run(self, interval_ns: int, longest_ns: int, most: int, is_main: bool, schedstat: int, /) -> bool: ...
    def stop(self) -> None: ...
    def take(self) -> list[RawSample]: ...


class FaulthandlerSampler:
    """Used where there is no C compiler. Reading a stack holds the interpreter lock for a few hundred
    microseconds, so it spaces samples far enough apart to stay within its share."""

    def __init__(self, subject: Subject, thread: int) -> None:
        self._subject = subject
        self._thread = thread
        self._samples: list[RawSample] = []
        self._running = False
        self.spent_ns = self.taken = 0

    def run(self, interval_ns: int, longest_ns: int, most: int, _: bool, __: int, /) -> bool:
        self._running = True
        switch = sys.getswitchinterval()
        sys.setswitchinterval(min(switch, max(_LOWEST_SWITCH_S, interval_ns / 1e9)))
        try:
            self._sample(interval_ns, longest_ns, most)
        finally:
            sys.setswitchinterval(switch)
            self._running = False
        return True

    def _sample(self, interval_ns: int, longest_ns: int, most: int) -> None:
        clock, stack = ThreadClock(self._thread), StackReader(self._thread)
        first = last = time.monotonic_ns()
        busy = clock.read()
        enough = self.taken + most
        while self._running and self.taken < enough and last - first < longest_ns:
            time.sleep(interval_ns / 1e9)
            now, spent = time.monotonic_ns(), time.thread_time_ns()
            text, phase, busy_now = stack.dump(), self._phase(), clock.read()
            if text and phase >= 0:
                times = now - last, busy_now[0] - busy[0], busy_now[1] - busy[1]
                self._samples.append((phase, *times, now, _when(*times), (self._thread, text)))
                self.taken += 1
            last, busy = now, busy_now
            spent = time.thread_time_ns() - spent
            self.spent_ns += spent
            interval_ns = max(interval_ns, int(spent / SHARE))
        stack.close()
        clock.close()

    def _phase(self) -> int:
        try:
            return self._subject.phase
        except ValueError:  # the ring is growing
            return -1

    def stop(self) -> None:
        self._running = False

    def take(self) -> list[RawSample]:
        taken, self._samples = self._samples, []
        return taken


def _when(ns: int, cpu: int, queued: int) -> int:
    """A thread that waits is where it waits. One that works may give the lock away only some time later."""
    return EXACT if 2 * (cpu + queued) < ns else LATE


def _best() -> Any:
    if os.environ.get("GPUMON_PURE", "") not in ("", "0"):
        return FaulthandlerSampler
    try:
        return importlib.import_module("._native", __package__).Sampler
    except ImportError:
        return FaulthandlerSampler


BestSampler = _best()


class Lines:
    """Code objects and offsets → frames; each is looked up only once."""

    def __init__(self) -> None:
        self._frames: dict[tuple[CodeType, int], Frame] = {}
        self._starts: dict[CodeType, tuple[list[int], list[int]]] = {}
        self._codes: dict[CodeType, Code] = {}
        self._meant: dict[tuple[CodeType, int], int] = {}

    def read(self, when: int, stack: Any) -> tuple[list[Frame], bool]:
        """The frames, innermost call first, and whether the innermost line is where the time was spent."""
        if len(stack) == 2 and isinstance(stack[1], bytes):
            return parse(stack[1], stack[0]), when == EXACT
        frames = [self._frame(stack[at], stack[at + 1]) for at in range(0, len(stack), 2)]
        return self._corrected(frames, stack) if when == CHECKED and frames else (frames, when == EXACT)

    def _corrected(self, frames: list[Frame], stack: Any) -> tuple[list[Frame], bool]:
        """At the line that a check singles out. In a library, the user's line is the call that runs."""
        if len(frames) > 1 and is_user_file(frames[1].file) and self._code(stack[0]).begins(stack[1]):
            frames, stack = frames[1:], stack[2:]
        if not is_user_file(frames[0].file):
            return frames, True
        line = self._line_meant(*stack[:2])
        return [frames[0]._replace(line=line or frames[0].line), *frames[1:]], line > 0

    def _line_meant(self, code: CodeType, offset: int) -> int:
        if (code, offset) not in self._meant:
            self._meant[code, offset] = self._code(code).line(offset)
        return self._meant[code, offset]

    def _code(self, code: CodeType) -> Code:
        if code not in self._codes:
            self._codes[code] = Code(code, lambda offset: self._line(code, offset))
        return self._codes[code]

    def _frame(self, code: CodeType, offset: int) -> Frame:
        found = self._frames.get((code, offset))
        if found is None:
            found = Frame(code.co_filename, self._line(code, offset), code.co_name)
            self._frames[code, offset] = found
        return found

    def _line(self, code: CodeType, offset: int) -> int:
        if code not in self._starts:
            known = [(start, line) for start, _, line in code.co_lines() if line]
            self._starts[code] = [start for start, _ in known], [line for _, line in known]
        starts, lines = self._starts[code]
        at = bisect_right(starts, max(0, offset)) - 1
        return lines[at] if at >= 0 else code.co_firstlineno

"""The hot half of the recorder: what happens in the loop is written down, and nothing else.

A mark is one integer, kept in a list and in the ring's live word. The first mark that comes five
milliseconds after the last playback plays the tape back into records: at once for all but very quick
steps, and several of those together. Between two marks the training has thrown our code and data out of
every cache, so a mark touches as little as it can, and what there is to compute is computed together.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import get_ident
from typing import Any

from .device import DeviceTimer, Flight
from .phases import BETWEEN, DATA, END_STEP, LIVE, LOW, OTHER, SAMPLES, SHIFT, STEP, TOKENS, PhaseNames
from .ring import H_CLOSED, H_LIVE

clock = time.monotonic_ns

_BETWEEN, _OTHER = LIVE[BETWEEN], LIVE[OTHER]
_STEP, _END_STEP, _SAMPLES, _TOKENS = (event << SHIFT for event in (STEP, END_STEP, SAMPLES, TOKENS))


class Tape(ABC):
    """One loop, one thread. Every method is harmless when the recorder is off: then `thread` is nobody's."""

    __slots__ = (
        "append",
        "bits",
        "closed",
        "device",
        "horizon",
        "marks",
        "names",
        "on",
        "stack",
        "thread",
        "words",
    )

    def __init__(self, words: memoryview) -> None:
        self.thread = get_ident()
        self.marks: list[Any] = []
        """Integers; now and then a tuple: a function with its arguments, for what is rare."""
        self.append = self.marks.append
        self.words = words
        self.horizon = 0
        """The first mark behind this time plays the tape back."""
        self.names = PhaseNames()
        self.bits = self.names.bits
        self.stack: list[int] = []
        """Marks to go back to, of the phases that stand still around the open one."""
        self.device: DeviceTimer | None = None
        self.closed = 0
        """Steps whose work is done; the ring's `H_CLOSED`."""
        self.on = True

    @abstractmethod
    def play(self, now: int) -> None:
        """Play the tape back."""

    def submitted(self) -> None:
        """The step's work is on the device's queue."""
        flight = self.device.end() if self.device is not None else None
        if flight is not None:
            self.later(self.number, flight)

    @abstractmethod
    def number(self, flight: Flight) -> None:
        """Give a step on the device the number of its record."""

    def mark(self, phase: int) -> None:
        """From here on it is `phase`. Callers that may be in any thread ask `get_ident` first."""
        now = clock()
        mark = now | LIVE[phase]
        self.append(mark)
        self.words[H_LIVE] = mark
        if now > self.horizon:
            self.play(now)

    @property
    def phase(self) -> int:
        """The phase that is open now."""
        return int(self.words[H_LIVE]) >> SHIFT

    def push(self, phase: int) -> None:
        """Open a nested phase: the outer one stands still meanwhile."""
        if get_ident() == self.thread:
            self.stack.append(self.phase)
            self.mark(phase)

    def pop(self) -> None:
        if self.stack and get_ident() == self.thread:
            self.mark(self.stack.pop())

    # ── the loader ───────────────────────────────────────────────────────────────────────────────

    def waiting(self) -> bool:
        """A batch is asked for. Whether that is a wait of this loop, not one inside another phase."""
        if get_ident() != self.thread or self.stack:
            return False
        self.mark(DATA)
        return True

    def arrived(self, asked: bool, then: int) -> None:
        """The batch asked for is here; `then` is the phase that follows."""
        if asked and self.on:
            self.mark(then)
            if self.device is not None:
                self.device.begin()

    def exhausted(self, asked: bool) -> None:
        """No batch came: that wait belongs to the step before, and so does what follows it."""
        if asked and self.on:
            self.mark(BETWEEN)

    def count(self, samples: int, tokens: int) -> None:
        """A batch of this size is in the open record."""
        self.append(_SAMPLES | samples & LOW)
        if tokens:
            self.append(_TOKENS | tokens & LOW)

    # ── steps ────────────────────────────────────────────────────────────────────────────────────

    def step(self) -> None:
        """The work of this step is done. What follows is `between`, until the next one begins."""
        if get_ident() != self.thread:
            return
        now = clock()
        if self.device is not None:
            self.submitted()
        self.append(now | _STEP)
        words = self.words
        words[H_LIVE] = now | _BETWEEN
        words[H_CLOSED] = self.closed = self.closed + 1
        if now > self.horizon:
            self.play(now)

    def end_step(self) -> None:
        """The step ends here and the next one begins: for loops whose begin nobody sees."""
        now = clock()
        self.append(now | _END_STEP)
        self.words[H_LIVE] = now | _OTHER
        self.words[H_CLOSED] = self.closed = self.closed + 1
        if now > self.horizon:
            self.play(now)

    def later(self, what: Callable[..., None], *values: Any) -> None:
        """Call `what(*values)` when the tape has been played to here."""
        self.append((what, values))

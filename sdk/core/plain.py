"""The hot half of the recorder in Python: the meaning of every mark, and what runs where `native.c`
could not be built. Change both together; `tests/unit/sdk/test_core.py` holds them to each other.

A mark closes the phase that was open and opens another; `step()` closes the work of a record, which stays
open for `between` until the next step begins. Begin to begin: a record ends where the next one begins.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .. import ring
from ..phases import BETWEEN, DATA, LIVE, OTHER, SCRATCH_WORDS, STARTS
from ..ring import (
    H_CLOSED,
    H_LIVE,
    W_BEGIN,
    W_END,
    W_FLAGS,
    W_LOSS,
    W_OVERHEAD,
    W_PHASES,
    W_SAMPLES,
    W_TOKENS,
)

if TYPE_CHECKING:
    from ..writer import Slots

clock = time.monotonic_ns

_CALL_NS = 1500
"""Entering and leaving, not visible from inside; in place, as `tests/benchmarks/sdk` measures it."""
_SLOW_STEP_NS = 10_000_000
"""Nothing compiles in less: shorter steps need not be asked."""
MOST_NESTED = 64
_SHAPES_EVERY = 8


def tracing() -> bool:
    """Whether torch compiles this rather than runs it: it is told to take the C one for True."""
    return False


class Core:
    """One loop, one thread, one ring. `Recorder` adds what is rare and is called for it: `rare`,
    `unusual`, `full`, `failed`, `first_lap`, `say`, `device_begins`, `device_ends`, `look_at`."""

    __slots__ = (
        "_book", "_known", "_nested", "_path", "_ring", "_seen", "_told",
        "asked", "begun", "closed", "cur", "depth", "done", "duration", "empty", "next_call", "next_flags",
        "next_slow", "on", "overhead", "scratch", "since", "special", "spent_ns", "step_mode", "steps",
        "thread", "watched",
    )  # fmt: skip

    def __init__(self) -> None:
        self.thread = get_ident()
        """Whose loop this is; 0: nobody's, the recorder is off."""
        self.on = True
        self._ring: Slots | None = None
        self._book = array("Q", bytes(8 * SCRATCH_WORDS))
        self.scratch = memoryview(self._book)[: ring.SLOT_WORDS]
        """The open record."""
        self.empty = memoryview(array("Q", ring.EMPTY_RECORD))
        """What a record begins as."""
        self.scratch[:] = self.empty
        self.cur = OTHER
        self.since = self.closed = clock()
        """Begin of the open phase; end of the work of the open record, 0 while it goes on."""
        self.asked = 0
        """When the batch was asked for that may begin the next record: the loader may be at its end."""
        self.begun = self.step_mode = False
        """Whether a record is open; whether this loop has no begin of its own, so `step()` is it."""
        self.steps = self.done = 0
        """Records committed; steps whose work is done (the ring's `H_CLOSED`)."""
        self.special = True
        """Ask `unusual` about every record."""
        self.watched = False
        """There is a device whose events are recorded."""
        self.next_call = self.next_slow = 0
        """The record, and the time, from which on `rare` is called."""
        self.next_flags = self.overhead = self.spent_ns = self.duration = 0
        self._known: dict[str, int] = {}
        self._nested: list[int] = []
        self.depth = 0
        self._told: list[tuple[int, int]] = []
        self._path: tuple[Any, ...] | None = None
        self._seen = 0

    def use(self, slots: Slots | None) -> None:
        """Records go to this ring; None: let go of the one there is."""
        self._ring = slots

    # ── what `Recorder` is asked ─────────────────────────────────────────────────────────────────────

    if TYPE_CHECKING:

        def rare(self, now: int) -> None: ...
        def unusual(self, duration: int) -> None: ...
        def full(self, _: int) -> None: ...
        def failed(self, error: Exception) -> None: ...
        def first_lap(self, name: str) -> None: ...
        def say(self, *args: Any, **kwargs: Any) -> None: ...
        def device_begins(self, _: int) -> None: ...
        def device_ends(self, _: int) -> None: ...
        def look_at(self, batch: Any) -> None: ...

    def guarded(self, what: Callable[[Any], None], value: Any) -> None:
        """Nothing of ours reaches the loop but what is meant for it (KeyboardInterrupt, SystemExit)."""
        try:
            what(value)
        except Exception as error:  # noqa: BLE001 — the guard of the loop; counted and shown
            self.failed(error)

    # ── records ──────────────────────────────────────────────────────────────────────────────────────

    def _spend(self, now: int) -> None:
        self._book[W_PHASES + self.cur] += now - self.since
        self.since = now

    def roll(self, now: int) -> None:
        """Commit the open record with its end at `now`, and begin the next one there."""
        if self.begun:
            if now > self.since:
                self._spend(now)
            self._commit(now)
        self.scratch[:] = self.empty
        self.scratch[W_BEGIN] = self.since = now
        self.scratch[W_FLAGS] = self.next_flags
        self.next_flags = self.closed = 0
        self.begun = True
        self.cur = OTHER

    def _commit(self, now: int) -> None:
        self.scratch[W_END] = now
        self.duration = now - self.scratch[W_BEGIN]
        if self.special or self.duration > _SLOW_STEP_NS:
            self.guarded(self.unusual, self.duration)
        self.scratch[W_OVERHEAD] = self.overhead
        self.spent_ns += self.overhead
        self.overhead = 0
        if self._ring is not None:
            self._ring.commit(self.scratch)
        self.steps += 1

    def _begin_phase(self, phase: int, now: int) -> None:
        """The step that a wait for data begins is rolled when the wait is over: the loader may be at its
        end, and then the wait belongs to the step before."""
        if self.asked:
            if phase == DATA:
                return
            asked, self.asked = self.asked, 0
            if phase != BETWEEN:
                self.roll(asked)
                self.cur = DATA
        elif self.closed and STARTS[phase]:
            if phase == DATA:
                self.asked = now
            else:
                self.roll(now)
        self._spend(now)
        self.cur = phase

    def _leave(self, live: int, now: int) -> None:
        """The end of every mark: what is live now, what it cost, and what is due."""
        if self._ring is not None:
            self._ring.words[H_LIVE] = LIVE[live] | now
        if self.steps and (self.steps >= self.next_call or now > self.next_slow):
            self.guarded(self.rare, now)
        self.overhead += clock() - now + _CALL_NS

    # ── marks ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def phase(self) -> int:
        """The phase that is open now, as the ring says it. Asked from other threads, too."""
        return OTHER if self._ring is None else int(self._ring.words[H_LIVE]) >> 56

    def know(self, name: str, phase: int) -> None:
        """What `lap` calls this phase."""
        self._known[name] = phase

    def mark(self, phase: int) -> None:
        """From here on it is `phase`. Callers that may be in any thread ask first whose loop it is."""
        now = clock()
        self._begin_phase(phase, now)
        self._leave(phase, now)

    def lap(self, name: str) -> None:
        """The same by name; in another thread it is nothing."""
        if get_ident() != self.thread:
            return
        phase = self._known.get(name) if isinstance(name, str) else None
        if phase is None:
            self.guarded(self.first_lap, name)
        else:
            self.mark(phase)

    def push(self, phase: int) -> None:
        """Open a nested phase: the outer one stands still meanwhile."""
        if get_ident() == self.thread:
            if self.depth < MOST_NESTED:
                self._nested.append(self.phase)
            self.depth += 1
            self.mark(phase)

    def pop(self) -> None:
        if self.depth and get_ident() == self.thread:
            self.depth -= 1
            self.mark(self._nested.pop() if self.depth < MOST_NESTED else self._nested[-1])

    def waiting(self) -> bool:
        """A batch is asked for. Whether that is a wait of this loop, not one inside another phase."""
        if get_ident() != self.thread or self.depth:
            return False
        self.mark(DATA)
        return True

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, samples: int | None, tokens: int | None, loss: float | None) -> None:
        """What the user says of the step that ends now is the truth, whatever was counted."""
        self._told = []
        words = ((W_SAMPLES, samples), (W_TOKENS, tokens))
        told = [(at, array("Q", [value])[0]) for at, value in words if value is not None]
        if loss is not None:
            told.append((W_LOSS, ring.float_bits(loss)))
        self._told = told

    def step(self, *args: Any, **kwargs: Any) -> None:
        """The work of this step is done; what else is said of it goes to `say`. What follows is
        `between`, until the next step begins."""
        if get_ident() != self.thread:
            return
        if args or kwargs:
            try:
                self.say(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 — a step is a step, whatever was said of it
                self.failed(error)
        now = clock()
        if self.watched:
            self.guarded(self.device_ends, now)
        self._work_done(now)
        self.count_done()
        self._leave(BETWEEN, now)

    def _work_done(self, now: int) -> None:
        if self.asked:
            self._begin_phase(OTHER, now)
        if self.closed:
            self._step_without_begin(self.closed)
        for at, word in self._told:
            self.scratch[at] = word
        self._told = []
        self._spend(now)
        self.closed = now
        self.cur = BETWEEN
        if self.step_mode:
            self.roll(now)

    def _step_without_begin(self, closed: int) -> None:
        """Two `step()` and no mark between: this loop has no begin of its own, so a step ends where
        the last one ended. What was counted as `between` was the step itself."""
        if self.begun:
            behind = max(0, self.since - closed)
            self.scratch[W_PHASES + BETWEEN] = max(0, self.scratch[W_PHASES + BETWEEN] - behind)
            self.step_mode = True
        self.since = closed
        self.roll(closed)

    def count_done(self) -> None:
        """One step more has its work done; what a killed process could not commit is counted as lost."""
        self.done += 1
        if self._ring is not None:
            self._ring.words[H_CLOSED] = self.done

    def end_step(self) -> None:
        """The step ends here and the next one begins: for loops whose begin nobody sees."""
        now = clock()
        self.roll(now)
        self.count_done()
        self._leave(OTHER, now)

    def complete(self) -> None:
        """The open record has all its work, and the next batch is asked for."""
        now = clock()
        if self.begun and not self.closed:
            self.closed = now
        self._begin_phase(DATA, now)
        self.count_done()
        self._leave(DATA, now)

    # ── batches ──────────────────────────────────────────────────────────────────────────────────────

    def sized(self, path: tuple[Any, ...] | None) -> None:
        """Where in a batch its first tensor is; None: `look_at` must find it."""
        self._path = path

    def count_batch(self, batch: Any) -> None:
        """Add the batch's samples to the open record. Shapes are looked at now and then: the number
        alone is had for less."""
        self._seen += 1
        if self._path is not None and self._seen % _SHAPES_EVERY:
            try:
                found = batch
                for key in self._path:
                    found = found[key]
                self.scratch[W_SAMPLES] += len(found)
                return
            except Exception:  # noqa: BLE001 — a batch of another kind: look again
                self._path = None
        self.guarded(self.look_at, batch)

    def arrived(self, then: int, batch: Any, counting: bool) -> None:
        """The batch is here: `then` follows, and it is counted if that is wanted."""
        self.mark(then)
        if self.watched:
            self.guarded(self.device_begins, 0)
        if counting:
            self.count_batch(batch)

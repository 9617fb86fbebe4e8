"""The hot path: stamps phase boundaries into a private record and commits it at the step's end.

Begin to begin: a record ends where the next one begins, so what happens between two steps is in it
too. `step()` only closes the work; the record stays open for `between` (or a named phase) until the
next step begins, and is committed then.
"""

from __future__ import annotations

import time
import weakref
from array import array
from collections import Counter
from collections.abc import Callable
from threading import get_ident

from . import ring
from .device import DeviceTimer
from .dynamo import graph_counts
from .phases import BETWEEN, DATA, LIVE, LIVE_MASK, OTHER, SCRATCH_WORDS, STARTS, PhaseNames
from .ring import (
    H_LIVE,
    W_BEGIN,
    W_END,
    W_EPOCH,
    W_FLAGS,
    W_GC,
    W_LOSS,
    W_OVERHEAD,
    W_PHASES,
    W_SAMPLES,
    W_TOKENS,
)  # fmt: skip
from .statistics import Totals
from .writer import FOLD, RingWriter, Slots, memory_slots

clock = time.monotonic_ns
_HOUSEKEEPING_NS = 1_000_000_000
WARMUP_STEPS = 2
WARMUP_LIMIT = 10
_CALL_NS = 120
"""Entering and leaving one of our functions: not visible from inside it."""

alive: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder:
    """One loop, one thread, one ring. Every method is harmless when the recorder is off."""

    __slots__ = (
        "__weakref__", "_compiled", "_empty", "_epoch", "_folded", "_graphs", "_last", "_mark_ns",
        "_marks", "_measure", "_next_flags", "_next_slow", "_scratch", "_since", "_slots", "_special",
        "_spent", "_started", "_view", "_warm", "_words", "begun", "closed", "cur", "device", "errors",
        "gc_collections", "gc_ns", "names", "next_look", "on", "on_look", "on_slow", "overhead_ns",
        "stack", "step_mode", "steps", "thread", "totals", "writer",
    )  # fmt: skip

    def __init__(self, writer: RingWriter | None) -> None:
        self.writer = writer
        self.names = PhaseNames()
        self.totals = Totals()
        self._scratch = array("Q", [0] * SCRATCH_WORDS)
        self._view = memoryview(self._scratch)[: ring.SLOT_WORDS]
        self._started = self._since = clock()
        self.stack: list[int] = []
        self.cur = OTHER
        self.on = True
        self.begun = self.step_mode = False
        self.closed = self._started
        self._next_flags = self._epoch = self.errors = 0
        self.thread = get_ident()
        self.on_look: Callable[[int, int, int], None] | None = None
        self.next_look = 0
        self.device: DeviceTimer | None = None
        self._graphs: dict[str, int] = graph_counts() or Counter()
        self._compiled = self._graphs["unique_graphs"]
        self._slots: Slots = writer or memory_slots()
        self.steps = self._folded = 0
        self._spent = 0
        self._words = self._slots.words
        self._special = True
        self._empty = memoryview(array("Q", ring.EMPTY_RECORD))
        self.on_slow: Callable[[int], None] | None = None
        self._last = 0
        self._warm = False
        self._next_slow = 0
        self._marks = self._mark_ns = self.overhead_ns = 0
        self._measure = True
        self.gc_ns = self.gc_collections = 0
        self._view[:] = self._empty
        alive.add(self)

    # ── marks ────────────────────────────────────────────────────────────────────────────────────

    def mark(self, phase: int) -> None:
        """From here on it is `phase`. The one call behind laps, phases and hooks; those that may come
        from any thread ask `get_ident` first."""
        if not self.on:
            return
        now = clock()
        if self.closed and STARTS[phase]:
            self.roll(now)
        self._scratch[W_PHASES + self.cur] += now - self._since
        self.cur = phase
        self._since = now
        self._words[H_LIVE] = LIVE[phase] | (now & LIVE_MASK)
        self._marks += 1
        if self._measure:
            self._measure = False
            self._mark_ns += (clock() - now + _CALL_NS - self._mark_ns) >> 2

    def push(self, phase: int) -> None:
        """Open a nested phase: the outer one stands still meanwhile."""
        if get_ident() == self.thread:
            self.stack.append(self.cur)
            self.mark(phase)

    def pop(self) -> None:
        if self.stack and get_ident() == self.thread:
            self.mark(self.stack.pop())

    def register(self, name: str) -> int:
        phase = self.names.register(name)
        self.totals.use(phase)
        return phase

    # ── the loader ───────────────────────────────────────────────────────────────────────────────

    def waiting(self) -> int:
        """A batch is asked for: live phase `data`. The step it begins is rolled when it has come,
        because the loader may be at its end. Gives the begin, 0 when this wait is not ours."""
        if not self.on or self.stack or get_ident() != self.thread:
            return 0
        now = clock()
        self._scratch[W_PHASES + self.cur] += now - self._since
        self.cur = DATA
        self._since = now
        self._words[H_LIVE] = LIVE[DATA] | (now & LIVE_MASK)
        return now

    def arrived(self, asked: int, then: int) -> None:
        """The batch asked for at `asked` is here; `then` is the phase that follows."""
        if not asked or not self.on:
            return
        now = clock()
        if self.closed:
            since = self._since
            self.roll(asked)
            self._since = since
        self._scratch[W_PHASES + DATA] += now - self._since
        self.cur = then
        self._since = now
        self._words[H_LIVE] = LIVE[then] | (now & LIVE_MASK)
        self._marks += 2
        if self.device is not None:
            self.device.begin()

    def exhausted(self, asked: int) -> None:
        """No batch came: that wait belongs to the step before, and so does what follows it."""
        if not asked or not self.on:
            return
        now = clock()
        self._scratch[W_PHASES + DATA] += now - self._since
        self.cur = BETWEEN
        self._since = now
        self._words[H_LIVE] = LIVE[BETWEEN] | (now & LIVE_MASK)

    # ── steps ────────────────────────────────────────────────────────────────────────────────────

    def step(self, samples: int | None, tokens: int | None, loss: float | None) -> None:
        """The work of this step is done. What follows is `between`, until the next one begins.
        Samples and tokens given here are the truth; else those counted from its batches are."""
        if not self.on or get_ident() != self.thread:
            return
        now = clock()
        if self.closed:
            self._step_without_begin(now)
        scratch = self._scratch
        scratch[W_PHASES + self.cur] += now - self._since
        self._since = now
        if samples is not None:
            scratch[W_SAMPLES] = samples
        if tokens is not None:
            scratch[W_TOKENS] = tokens
        if loss is not None:
            scratch[W_LOSS] = ring.float_bits(loss)
        self.closed = now
        if self.device is not None:
            self.device.end(self.steps + 1)
        if self.step_mode:
            self.cur = OTHER
            self.roll(now)
        else:
            self.cur = BETWEEN
            self._words[H_LIVE] = LIVE[BETWEEN] | (now & LIVE_MASK)
        self.overhead_ns += clock() - now + _CALL_NS

    def _step_without_begin(self, now: int) -> None:
        """Two `step()` and no mark between: this loop has no begin of its own, so a step ends where
        the last one ended. What was counted as `between` was the step itself."""
        closed = self.closed
        if self.begun:
            between = self._scratch[W_PHASES + BETWEEN]
            since = max(self._since, closed)
            self._scratch[W_PHASES + BETWEEN] = max(0, between - (since - closed))
            self.step_mode = True
        self._since = closed
        self.cur = OTHER
        self.roll(closed)
        self._since = closed

    def log(self, seconds: float, samples: int) -> None:
        """A step somebody else has timed, which ends now (the seed's `log_iteration`)."""
        if not self.on or get_ident() != self.thread:
            return
        now = clock()
        begin = max(now - max(0, int(seconds * 1e9)), self.closed)
        self._scratch[W_PHASES + BETWEEN] += max(0, begin - self._since) if self.begun else 0
        self._since = begin
        self.cur = OTHER
        self.roll(begin)
        self._scratch[W_SAMPLES] += samples
        self.closed = self._since = now
        self.cur = BETWEEN
        self._words[H_LIVE] = LIVE[BETWEEN] | (now & LIVE_MASK)
        self.overhead_ns += clock() - now + _CALL_NS

    def roll(self, now: int) -> None:
        """Commit the open record with its end at `now`, and begin the next one there.

        One long function: what it touches is cold after a step of real work, and every call more is
        another microsecond."""
        entered = clock()
        scratch = self._scratch
        if self.begun:
            if now > self._since:
                scratch[W_PHASES + self.cur] += now - self._since
            scratch[W_END] = now
            if self._special or self._graphs["unique_graphs"] != self._compiled:
                self._flag(scratch, now)
            if self.gc_ns:
                scratch[W_GC] = self.gc_ns
                self.gc_ns = 0
            spent = scratch[W_OVERHEAD] = self.overhead_ns + self._marks * self._mark_ns
            self._spent += spent
            self.overhead_ns = self._marks = 0
            slots = self._slots
            slots.commit(self._view)
            self._words = slots.words
            steps = self.steps = self.steps + 1
            if not steps % FOLD or steps >= self.next_look or now > self._next_slow:
                self._attend(steps, now, now - scratch[W_BEGIN])
        self._view[:] = self._empty
        scratch[W_BEGIN] = self._since = now
        if self._next_flags:
            scratch[W_FLAGS] = self._next_flags
            self._next_flags = 0
        self.closed = 0
        self.begun = True
        self.cur = OTHER
        self.overhead_ns += clock() - entered

    def close(self) -> None:
        """The open record has all its work (a hook's way to say `step()`)."""
        if self.begun and not self.closed:
            self.closed = clock()

    def submitted(self) -> None:
        """The step's work is on the device's queue (the optimizer has stepped)."""
        if self.device is not None:
            self.device.end(self.steps + 1)

    def end_step(self) -> None:
        """The step ends here and the next one begins: for loops whose begin nobody sees."""
        now = clock()
        self.roll(now)
        self._words[H_LIVE] = LIVE[OTHER] | (now & LIVE_MASK)

    def restart(self) -> None:
        """Forget the open record: what was in it was no step."""
        self.begun = False
        self.closed = self._since
        self.gc_ns = 0

    def count(self, samples: int, tokens: int) -> None:
        """A batch of this size is in the open record."""
        self._scratch[W_SAMPLES] += samples
        self._scratch[W_TOKENS] += tokens

    def attach(self, writer: RingWriter) -> None:
        """From now on records go to this ring; nothing before was lost, nothing was committed."""
        writer.words[H_LIVE] = LIVE[self.cur] | (self._since & LIVE_MASK)
        self.fold()
        self.writer = self._slots = writer
        self._words = writer.words

    def flag_next(self, flags: int) -> None:
        """Set flags on the record that begins next."""
        self._next_flags |= flags

    def flag(self, flags: int) -> None:
        """Set flags on the open record."""
        self._scratch[W_FLAGS] |= flags

    def _flag(self, scratch: array[int], end: int) -> None:
        """What only some runs or the first steps need."""
        steps = self.steps
        if self.device is not None:
            self.device.collect(scratch)
        if not self._graphs:
            self._graphs = graph_counts() or self._graphs
        if self._graphs["unique_graphs"] != self._compiled:
            self._compiled = self._graphs["unique_graphs"]
            scratch[W_FLAGS] |= ring.F_COMPILED | ring.F_WARMUP
        if not self._warm and steps < WARMUP_LIMIT:
            self._warm_up(steps, end - scratch[W_BEGIN])
        self._special = self.device is not None or not self._graphs or steps < WARMUP_LIMIT

    def _attend(self, steps: int, now: int, duration: int) -> None:
        """Now and then: sums, a close look, the cost of a mark, housekeeping."""
        self._measure = True
        self.fold()
        if steps >= self.next_look and self.on_look is not None:
            self.on_look(steps, now, duration)
        if now > self._next_slow:
            self._slow(now)

    def fold(self) -> None:
        """Add up the records that are not in the sums yet; the slots before them are in one piece."""
        waiting = self.steps - self._folded
        self._folded = self.steps
        self.totals.add(self._slots.newest(waiting))

    def _slow(self, now: int) -> None:
        """Once a second: what readers need less often, and the monitor's own housekeeping."""
        self._next_slow = now + _HOUSEKEEPING_NS
        self._words[ring.H_OVERHEAD] = self._spent
        if self.device is not None:
            self._words[ring.H_DROPPED] = self.device.skipped
        if self.on_slow is not None:
            self.on_slow(now)

    def _warm_up(self, steps: int, duration: int) -> None:
        """Flag the first steps, and go on until one is about as long as the one before it."""
        if steps >= WARMUP_STEPS and 0.67 * self._last < duration < 1.5 * self._last:
            self._warm = True
        if not self._warm:
            self.flag(ring.F_WARMUP)
            self._last = duration

    def epoch(self, number: int | None = None) -> None:
        """A new epoch begins with the next step; without a number they are counted."""
        self._epoch = self._epoch + 1 if number is None else number
        self._empty[W_EPOCH] = self._epoch
        if self.closed:
            self._next_flags |= ring.F_EPOCH_START
        else:
            self.flag(ring.F_EPOCH_START)
            self._scratch[W_EPOCH] = self._epoch

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────

    def finish(self, state: int) -> None:
        """Commit what `step()` has closed; work that was never closed by it is not a step. What comes
        after the last step (an end, workers going) is not between two of them."""
        if not self.on:
            return
        if self.begun and self.closed:
            last = self._since if self.cur == BETWEEN else clock()
            self.roll(last if not self.step_mode else self.closed)
        self.fold()
        self._words = self._slots.words
        self._words[H_LIVE] = LIVE[OTHER] | (clock() & LIVE_MASK)
        self._words[ring.H_OVERHEAD] = self._spent
        self.on = False
        if self.writer is not None:
            self._slots = memory_slots()
            self._words = self._slots.words
            self.writer.close(state)

    def spent_ns(self) -> int:
        """What the monitor itself has cost so far."""
        return self._spent

    def collected(self, phase: str, info: dict[str, int], started: list[int]) -> None:
        """`gc.callbacks` entry: Python's own pauses inside the step."""
        if phase == "start" and self.begun:
            started[0] = clock()
        elif started[0]:
            self.gc_ns += clock() - started[0]
            self.gc_collections += 1
            started[0] = 0

"""The cold half of the recorder: plays the tape back into records and commits them to the ring.

Begin to begin: a record ends where the next one begins, so what happens between two steps is in it
too. `step()` only closes the work; the record stays open for `between` (or a named phase) until the
next step begins, and is committed then.
"""

from __future__ import annotations

import weakref
from array import array
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from . import ring
from .device import Flight
from .dynamo import graph_counts
from .phases import (
    BETWEEN,
    COMPLETE,
    DATA,
    END_STEP,
    LIVE,
    LOW,
    OTHER,
    SAMPLES,
    SCRATCH_WORDS,
    SHIFT,
    STARTS,
    STEP,
)  # fmt: skip
from .ring import W_BEGIN, W_END, W_EPOCH, W_FLAGS, W_GC, W_LOSS, W_OVERHEAD, W_PHASES, W_SAMPLES, W_TOKENS
from .statistics import Totals
from .tape import Tape, clock
from .writer import FOLD, RingWriter, Slots, memory_slots

_HOUSEKEEPING_NS = 1_000_000_000
_BEHIND_NS = 5_000_000
"""Quicker steps are played back together; so many ns of them a killed process takes with it."""
_NEVER = 1 << 62
_COMPILING_NS = 10_000_000
"""Nothing compiles in less: shorter steps need not be asked."""
_EVENTS, _OTHER = STEP << SHIFT, LIVE[OTHER]
_CALL_NS = 120
"""Entering and leaving one of our functions: not visible from inside it."""
WARMUP_STEPS = 2
WARMUP_LIMIT = 10

alive: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder(Tape):
    """One ring. `steps` and the sums are as old as the last playback; `flush` brings them to now."""

    __slots__ = (
        "__weakref__", "_asked", "_begun", "_closed", "_compiled", "_cur", "_duration", "_empty", "_epoch",
        "_folded", "_graphs", "_last", "_mark_ns", "_marks", "_next_flags", "_next_slow", "_overhead_ns",
        "_pauses", "_scratch", "_since", "_slots", "_special", "_step_mode", "_told", "_view", "_warm",
        "errors", "gc_collections", "limit", "live_steps", "next_look", "on_error", "on_look", "on_slow",
        "spent_ns", "steps", "totals", "writer",
    )  # fmt: skip

    def __init__(self, writer: RingWriter | None) -> None:
        self._slots: Slots = writer or memory_slots()
        super().__init__(self._slots.words)
        self.writer = writer
        self.totals = Totals()
        self._scratch = array("Q", bytes(8 * SCRATCH_WORDS))
        self._view = memoryview(self._scratch)[: ring.SLOT_WORDS]
        self._empty = memoryview(array("Q", ring.EMPTY_RECORD))
        self._view[:] = self._empty
        self._cur = OTHER
        self._since = self._closed = clock()
        self._asked = 0
        self._told: tuple[int | None, int | None, float | None] | None = None
        self._begun = self._step_mode = False
        self._next_flags = self._epoch = self.errors = 0
        self.steps = self._folded = self.spent_ns = self._overhead_ns = self._marks = self._mark_ns = 0
        self._pauses: deque[tuple[int, int]] = deque()
        self.gc_collections = 0
        self._graphs: dict[str, int] = graph_counts() or Counter()
        self._compiled = self._graphs["unique_graphs"]
        self._special = True
        self._warm = False
        self.live_steps = False
        """Play every mark at once: somebody looks closely at single steps."""
        self.limit = 0
        """`gpumon analyze` asks for so many steps: the script ends then, as by `sys.exit()`; 0: no limit."""
        self._duration = self._last = self._next_slow = self.next_look = 0
        self.on_look: Callable[[int, int, int], None] | None = None
        self.on_slow: Callable[[int], None] | None = None
        self.on_error: Callable[[Exception], None] | None = None
        self.words[ring.H_LIVE] = LIVE[OTHER] | self._since
        alive.add(self)

    # ── playing back ─────────────────────────────────────────────────────────────────────────────

    def play(self, now: int) -> None:
        """Make records of the marks so far. `now` is the begin of the mark that brought us here: what it
        took from there is what a mark costs, in place."""
        self._catch_up(now)
        if self.limit and self.steps >= self.limit:
            self.limit = 0
            raise SystemExit(0)

    def _catch_up(self, now: int) -> None:
        """One function for what every step has, and one call more for what it may have: each call costs
        a microsecond here, where nothing is in the caches."""
        entered = clock()
        self.horizon = _NEVER  # a mark inside is not the begin of another playback
        steps, scratch = self.steps, self._scratch
        count = len(self.marks)
        marks = self.marks[:count]
        del self.marks[:count]
        try:
            for mark in marks if self.on else ():
                if type(mark) is int and (mark < _EVENTS or mark >= _OTHER):
                    at = mark & LOW
                    if self._asked or self._closed:
                        self._begin_phase(mark >> SHIFT, at)
                    else:
                        scratch[W_PHASES + self._cur] += at - self._since
                        self._cur = mark >> SHIFT
                        self._since = at
                else:
                    self._event(mark)
            self._marks += count
            if self.steps != steps and self.steps >= self.next_look and self.on_look is not None:
                self.on_look(self.steps, now, self._duration)
            if now > self._next_slow and self.steps:
                self._slow(now)
        except Exception as error:  # noqa: BLE001 — the one guard of the loop; counted and shown
            if self.on_error is not None:
                self.on_error(error)
        ended = clock()
        self._mark_ns += (entered - now + _CALL_NS - self._mark_ns) >> 2
        self._overhead_ns += ended - entered
        self.horizon = ended + _BEHIND_NS if self.on and not self.live_steps and not self.limit else 0

    def _begin_phase(self, phase: int, now: int) -> None:
        """The step that a wait for data begins is rolled when the wait is over: the loader may be at its
        end, and then the wait belongs to the step before."""
        if self._asked:
            if phase == DATA:
                return
            asked, self._asked = self._asked, 0
            if phase != BETWEEN:
                self._roll(asked)
                self._cur = DATA
        elif self._closed and STARTS[phase]:
            if phase == DATA:
                self._asked = now
            else:
                self._roll(now)
        self._scratch[W_PHASES + self._cur] += now - self._since
        self._cur = phase
        self._since = now

    def _event(self, mark: Any) -> None:
        """Whatever is on the tape beside phases."""
        if type(mark) is tuple:
            mark[0](*mark[1])
            return
        event, value = mark >> SHIFT, mark & LOW
        if event == STEP:
            self._step(value)
        elif event == COMPLETE:
            self.close(value)
            self._begin_phase(DATA, value)
        elif event == END_STEP:
            self._roll(value)
        else:
            self._scratch[W_SAMPLES if event == SAMPLES else W_TOKENS] += value

    def _step(self, now: int) -> None:
        if self._asked:
            self._begin_phase(OTHER, now)
        if self._closed:
            self._step_without_begin()
        if self._told is not None:
            self._tell(*self._told)
        self._scratch[W_PHASES + self._cur] += now - self._since
        self._since = self._closed = now
        self._cur = BETWEEN
        if self._step_mode:
            self._roll(now)

    def _step_without_begin(self) -> None:
        """Two `step()` and no mark between: this loop has no begin of its own, so a step ends where
        the last one ended. What was counted as `between` was the step itself."""
        closed = self._closed
        if self._begun:
            between = self._scratch[W_PHASES + BETWEEN]
            since = max(self._since, closed)
            self._scratch[W_PHASES + BETWEEN] = max(0, between - (since - closed))
            self._step_mode = True
        self._since = closed
        self._roll(closed)

    def _roll(self, now: int) -> None:
        """Commit the open record with its end at `now`, and begin the next one there."""
        scratch = self._scratch
        if self._begun:
            if now > self._since:
                scratch[W_PHASES + self._cur] += now - self._since
            scratch[W_END] = now
            duration = self._duration = now - scratch[W_BEGIN]
            if self._special or duration > _COMPILING_NS:
                self._flag(scratch, duration)
            while self._pauses and self._pauses[0][0] <= now:
                scratch[W_GC] += self._pauses.popleft()[1]
            spent = scratch[W_OVERHEAD] = self._overhead_ns + self._marks * self._mark_ns
            self.spent_ns += spent
            self._overhead_ns = self._marks = 0
            self._slots.commit(self._view)
            self.words = self._slots.words
            self.steps += 1
            if not self.steps % FOLD:
                self.fold()
        self._view[:] = self._empty
        scratch[W_BEGIN] = self._since = now
        scratch[W_FLAGS], self._next_flags = self._next_flags, 0
        self._closed = 0
        self._begun = True
        self._cur = OTHER

    def flush(self) -> None:
        """Bring everything to now."""
        if self.horizon != _NEVER:
            self._catch_up(clock())
        self.fold()

    # ── what is rare: called through `later`, at its place on the tape ───────────────────────────────

    def log(self, seconds: float, samples: int) -> None:
        """A step somebody else has timed, which ends now (the seed's `log_iteration`)."""
        now = clock()
        self.later(self._log, now, now - max(0, int(seconds * 1e9)), samples)
        self.mark(BETWEEN)

    def _log(self, now: int, began: int, samples: int) -> None:
        began = max(began, self._closed)
        self._scratch[W_PHASES + BETWEEN] += max(0, began - self._since) if self._begun else 0
        self._since = began
        self._cur = OTHER
        self._roll(began)
        self._scratch[W_SAMPLES] = samples
        self._closed = self._since = now
        self._cur = BETWEEN

    def told(self, samples: int | None, tokens: int | None, loss: float | None) -> None:
        """What the user says of the step that ends now is the truth, whatever was counted."""
        self._told = samples, tokens, loss

    def _tell(self, samples: int | None, tokens: int | None, loss: float | None) -> None:
        self._told = None
        if samples is not None:
            self._scratch[W_SAMPLES] = samples
        if tokens is not None:
            self._scratch[W_TOKENS] = tokens
        if loss is not None:
            self._scratch[W_LOSS] = ring.float_bits(loss)

    def usual(self, samples: int | None, tokens: int | None) -> None:
        """What every record has unless it is told otherwise."""
        self._empty[W_SAMPLES] = samples or 0
        self._empty[W_TOKENS] = tokens or 0

    def epoch(self, number: int | None = None) -> None:
        """A new epoch begins with the next step; without a number they are counted."""
        self.later(self._begin_epoch, number)

    def _begin_epoch(self, number: int | None) -> None:
        self._epoch = self._epoch + 1 if number is None else number
        self._empty[W_EPOCH] = self._epoch
        if self._closed:
            self._next_flags |= ring.F_EPOCH_START
        else:
            self.flag(ring.F_EPOCH_START)
            self._scratch[W_EPOCH] = self._epoch

    def number(self, flight: Flight) -> None:
        flight.number = self.steps + 1

    def close(self, now: int) -> None:
        """The open record has all its work (a hook's way to say `step()`)."""
        if self._begun and not self._closed:
            self._closed = now

    def restart(self) -> None:
        """Forget the open record: what was in it was no step."""
        self._begun = False
        self._closed = self._since
        self._pauses.clear()

    def relabel(self, phase: int) -> None:
        """What is open was `phase` all the time."""
        self._cur = phase

    def flag(self, flags: int) -> None:
        """Set flags on the open record."""
        self._scratch[W_FLAGS] |= flags

    def flag_next(self, flags: int) -> None:
        """Set flags on the record whose work is under way; if there is none, on the next one."""
        if self._begun and not self._closed:
            self.flag(flags)
        else:
            self._next_flags |= flags

    # ── now and then ─────────────────────────────────────────────────────────────────────────────

    def _flag(self, scratch: array[int], duration: int) -> None:
        """What only some runs, slow steps or the first steps need."""
        if self.device is not None:
            self.device.collect(scratch)
        if not self._graphs:
            self._graphs = graph_counts() or self._graphs
        if self._graphs["unique_graphs"] != self._compiled:
            self._compiled = self._graphs["unique_graphs"]
            scratch[W_FLAGS] |= ring.F_COMPILED | ring.F_WARMUP
        if not self._warm and self.steps < WARMUP_LIMIT:
            self._warm_up(duration)
        self._special = self.device is not None or self.steps < WARMUP_LIMIT

    def _warm_up(self, duration: int) -> None:
        """Flag the first steps, and go on until one is about as long as the one before it."""
        if self.steps >= WARMUP_STEPS and 0.67 * self._last < duration < 1.5 * self._last:
            self._warm = True
        if not self._warm:
            self.flag(ring.F_WARMUP)
            self._last = duration

    def fold(self) -> None:
        """Add up the records that are not in the sums yet; the slots before them are in one piece."""
        waiting = self.steps - self._folded
        self._folded = self.steps
        self.totals.add(self._slots.newest(waiting))

    def _slow(self, now: int) -> None:
        """Once a second: what readers need less often, and the monitor's own housekeeping."""
        self._next_slow = now + _HOUSEKEEPING_NS
        self.fold()
        self.words[ring.H_OVERHEAD] = self.spent_ns
        if self.device is not None:
            self.words[ring.H_DROPPED] = self.device.skipped
        if self.on_slow is not None:
            self.on_slow(now)

    def register(self, name: str) -> int:
        phase = self.names.register(name)
        self.totals.use(phase)
        return phase

    def collected(self, phase: str, started: list[int]) -> None:
        """`gc.callbacks` entry: Python's own pauses inside the step."""
        if phase == "start":
            started[0] = clock()
        elif started[0]:
            now = clock()
            self._pauses.append((now, now - started[0]))
            self.gc_collections += 1
            started[0] = 0

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────

    def attach(self, writer: RingWriter) -> None:
        """From now on records go to this ring; nothing before was lost, nothing was committed."""
        self.flush()
        writer.words[ring.H_LIVE] = self.words[ring.H_LIVE]
        self.writer = self._slots = writer
        self.words = writer.words

    def switch_off(self) -> None:
        """Record nothing more: this process, or this loop, is not ours."""
        self.on = False
        self.thread = self.horizon = 0

    def finish(self, state: int) -> None:
        """Commit what `step()` has closed; work that was never closed by it is not a step. What comes
        after the last step (an end, workers going) is not between two of them."""
        if not self.on:
            return
        self.flush()
        if self._begun and self._closed:
            last = self._since if self._cur == BETWEEN else clock()
            self._roll(last if not self._step_mode else self._closed)
        self.fold()
        self.words[ring.H_LIVE] = LIVE[OTHER] | clock()
        self.words[ring.H_OVERHEAD] = self.spent_ns
        self.switch_off()
        if self.writer is not None:
            self._slots = memory_slots()
            self.words = self._slots.words
            self.writer.close(state)

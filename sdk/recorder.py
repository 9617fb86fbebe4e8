"""The cold half of the recorder: what a loop needs now and then. `core` does what every mark needs."""

from __future__ import annotations

import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from . import ring
from .core import Core
from .device import DeviceTimer
from .dynamo import graph_counts
from .phases import BETWEEN, LIVE, OTHER, PhaseNames
from .ring import W_EPOCH, W_FLAGS, W_GC, W_PHASES, W_SAMPLES, W_TOKENS
from .statistics import Totals
from .writer import FOLD, RingWriter, Slots, memory_slots

clock = time.monotonic_ns
_HOUSEKEEPING_NS = 1_000_000_000
WARMUP_STEPS = 2
WARMUP_LIMIT = 10

alive: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder(Core):
    """One ring, its figures, and whoever wants to be called. Every method is harmless when it is off."""

    __slots__ = (
        "__weakref__", "_compiled", "_device", "_empty", "_epoch", "_folded", "_graphs", "_last", "_scratch",
        "_slots", "_warm", "errors", "gc_collections", "limit", "names", "next_look", "on_batch", "on_error",
        "on_lap", "on_look", "on_say", "on_slow", "totals", "writer",
    )  # fmt: skip

    def __init__(self, writer: RingWriter | None) -> None:
        super().__init__()
        self.writer = writer
        self._slots: Slots = writer or memory_slots()
        self.use(self._slots)
        self._scratch, self._empty = self.scratch, self.empty
        self.names = PhaseNames()
        self.totals = Totals()
        self._epoch = self._folded = self._last = self.errors = self.gc_collections = 0
        self._graphs: dict[str, int] = graph_counts() or Counter()
        self._compiled = self._graphs["unique_graphs"]
        self._warm = False
        self._device: DeviceTimer | None = None
        self.limit = 0
        """`gpumon analyze` asks for so many steps: the script ends then, as by `sys.exit()`; 0: no limit."""
        self.next_look = 0
        self.on_look: Callable[[int, int, int], None] | None = None
        self.on_slow: Callable[[int], None] | None = None
        self.on_lap: Callable[[str], None] | None = None
        self.on_say: Callable[..., None] | None = None
        self.on_batch: Callable[[Any], None] | None = None
        self.on_error: Callable[[Exception], None] | None = None
        self.words[ring.H_LIVE] = LIVE[OTHER] | self.since
        alive.add(self)

    @property
    def words(self) -> memoryview:
        """The ring's words."""
        return self._slots.words

    # ── called by the core ───────────────────────────────────────────────────────────────────────────

    def rare(self, now: int) -> None:
        """After some steps, or a second: what is too slow for every step."""
        if self.steps // FOLD > self._folded // FOLD:
            self.fold()
        if self.steps >= self.next_look and self.on_look is not None:
            self.on_look(self.steps, now, self.duration)
        if now > self.next_slow:
            self._slow(now)
        wanted = [(self._folded // FOLD + 1) * FOLD]
        if self.on_look is not None:
            wanted.append(self.next_look)
        if self.limit:
            wanted.append(self.limit)
        self.next_call = max(self.steps + 1, min(wanted))
        if self.limit and self.steps >= self.limit:
            self.limit = 0
            raise SystemExit(0)

    def unusual(self, duration: int) -> None:
        """What only some runs, slow steps or the first steps need, before their record is committed."""
        if self._device is not None:
            self._device.collect(self._scratch)
        if not self._graphs:
            self._graphs = graph_counts() or self._graphs
        if self._graphs["unique_graphs"] != self._compiled:
            self._compiled = self._graphs["unique_graphs"]
            self.flag(ring.F_COMPILED | ring.F_WARMUP)
        if not self._warm and self.steps < WARMUP_LIMIT:
            self._warm_up(duration)
        self.special = self._device is not None or self.steps < WARMUP_LIMIT

    def full(self, _: int) -> None:
        """All slots are used: the ring grows, or begins at its first slot again."""
        self.use(None)
        try:
            self._slots.grow()
        finally:
            self.use(self._slots)

    def failed(self, error: Exception) -> None:
        """Nothing of ours may stop a training."""
        if self.on_error is not None:
            self.on_error(error)

    def first_lap(self, name: str) -> None:
        if self.on_lap is not None:
            self.on_lap(name)

    def say(self, *args: Any, **kwargs: Any) -> None:
        if self.on_say is not None:
            self.on_say(*args, **kwargs)

    def look_at(self, batch: Any) -> None:
        if self.on_batch is not None:
            self.on_batch(batch)

    def device_begins(self, _: int) -> None:
        """The step's work begins on the device's queue."""
        if self._device is not None:
            self._device.begin()

    def device_ends(self, _: int) -> None:
        """It is all on the queue."""
        flight = self._device.end() if self._device is not None else None
        if flight is not None:
            flight.number = self.steps + 1

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────────

    def arrived_at(self, phase: int, asked: bool) -> None:
        """The batch asked for is here, and `phase` follows."""
        if asked and self.on:
            self.mark(phase)
            self.device_begins(0)

    def exhausted(self, asked: bool) -> None:
        """No batch came: that wait belongs to the step before, and so does what follows it."""
        if asked and self.on:
            self.mark(BETWEEN)

    def count(self, samples: int, tokens: int) -> None:
        """A batch of this size is in the open record."""
        self._scratch[W_SAMPLES] += samples
        self._scratch[W_TOKENS] += tokens

    def usual(self, samples: int | None, tokens: int | None) -> None:
        """What every record has unless it is told otherwise."""
        self._empty[W_SAMPLES] = samples or 0
        self._empty[W_TOKENS] = tokens or 0

    def log(self, seconds: float, samples: int) -> None:
        """A step somebody else has timed, which ends now (the seed's `log_iteration`)."""
        if not self.on:
            return
        now = clock()
        began = max(now - max(0, int(seconds * 1e9)), self.closed)
        self._scratch[W_PHASES + BETWEEN] += max(0, began - self.since) if self.begun else 0
        self.since = began
        self.cur = OTHER
        self.roll(began)
        self._scratch[W_SAMPLES] = samples
        self.closed = self.since = now
        self.cur = BETWEEN
        self.count_done()
        self.mark(BETWEEN)

    def epoch(self, number: int | None = None) -> None:
        """A new epoch begins with the next step; without a number they are counted."""
        self._epoch = self._epoch + 1 if number is None else number
        self._empty[W_EPOCH] = self._epoch
        if self.closed:
            self.next_flags |= ring.F_EPOCH_START
        else:
            self.flag(ring.F_EPOCH_START)
            self._scratch[W_EPOCH] = self._epoch

    def close(self) -> None:
        """The open record has all its work (a hook's way to say `step()`)."""
        if self.begun and not self.closed:
            self.closed = clock()
        self.count_done()

    def restart(self) -> None:
        """Forget the open record: what was in it was no step."""
        self.begun = False
        self.closed = self.since

    def relabel(self, phase: int) -> None:
        """What is open was `phase` all the time."""
        self.cur = phase

    def flag(self, flags: int) -> None:
        """Set flags on the open record."""
        self._scratch[W_FLAGS] |= flags

    def flag_next(self, flags: int) -> None:
        """Set flags on the record whose work is under way; if there is none, on the next one."""
        if self.begun and not self.closed:
            self.flag(flags)
        else:
            self.next_flags |= flags

    def register(self, name: str) -> int:
        """The phase of this name, from now on known to `lap`."""
        phase = self.names.register(name)
        self.totals.use(phase)
        self.know(name, phase)
        return phase

    @property
    def device(self) -> DeviceTimer | None:
        return self._device

    @device.setter
    def device(self, timer: DeviceTimer | None) -> None:
        self._device = timer
        self.watched = timer is not None
        self.special = True

    def collected(self, phase: str, started: list[int]) -> None:
        """`gc.callbacks` entry: Python's own pauses inside the step."""
        if phase == "start":
            started[0] = clock()
        elif started[0]:
            self._scratch[W_GC] += clock() - started[0]
            self.gc_collections += 1
            started[0] = 0

    # ── now and then ─────────────────────────────────────────────────────────────────────────────────

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
        self.next_slow = now + _HOUSEKEEPING_NS
        self.fold()
        self.words[ring.H_OVERHEAD] = self.spent_ns
        if self._device is not None:
            self.words[ring.H_DROPPED] = self._device.skipped
        if self.on_slow is not None:
            self.on_slow(now)

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────

    def attach(self, writer: RingWriter) -> None:
        """From now on records go to this ring; nothing before was lost, nothing was committed."""
        self.fold()
        writer.words[ring.H_LIVE] = self.words[ring.H_LIVE]
        self.writer = self._slots = writer
        self.use(writer)

    def switch_off(self) -> None:
        """Record nothing more: this process, or this loop, is not ours."""
        self.on = False
        self.thread = 0

    def finish(self, state: int) -> None:
        """Commit what `step()` has closed; work that was never closed by it is not a step. What comes
        after the last step (an end, workers going) is not between two of them."""
        if not self.on:
            return
        if self.begun and self.closed:
            last = self.since if self.cur == BETWEEN else clock()
            self.roll(last if not self.step_mode else self.closed)
        self.fold()
        self.words[ring.H_LIVE] = LIVE[OTHER] | clock()
        self.words[ring.H_OVERHEAD] = self.spent_ns
        self.switch_off()
        if self.writer is not None:
            self._slots = memory_slots()
            self.use(self._slots)
            self.writer.close(state)

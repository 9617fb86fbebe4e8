"""The recorder's slow path: what a loop needs occasionally. `core` does what every mark needs."""

from __future__ import annotations

import time
import weakref
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import ring
from ..compiler.counters import graph_counts
from ..core import Core
from ..core.phases import BETWEEN, LIVE, OTHER, PhaseNames
from ..device.absent import NoDevice
from ..ring import W_BEGIN, W_EPOCH, W_FLAGS, W_PHASES, W_SAMPLES, W_TOKENS
from ..writer import FOLD, MemoryRing, RingWriter
from ._totals import SAMPLED, STEADY, Totals

clock = time.monotonic_ns
_WORD = (1 << 64) - 1
NEVER = 1 << 62
"""A step number no run reaches."""
_SECOND_NS = 1_000_000_000
WARMUP_STEPS = 2
"""In every run the first steps allocate memory and choose kernels: they are never steady."""
WARMUP_LIMIT = 10
"""Chosen: if steps have not settled by now, their length simply varies."""
_SETTLED = 0.67, 1.5
"""Chosen: a step whose ratio to the previous one is in this range ends the warm-up."""

_ADDED_UP = (*range(W_PHASES, W_PHASES + ring.PHASE_SLOTS), W_SAMPLES, W_TOKENS, ring.W_GC)
"""Words of a record that only grow while it is open."""

_made: list[weakref.ref[Recorder]] = []
"""Not a `WeakSet`: it runs Python code when a recorder is freed, and a Ctrl-C just then would be lost."""


def alive() -> list[Recorder]:
    """The recorders of this process that still exist."""
    return [recorder for made in _made if (recorder := made()) is not None]


class Cut(NamedTuple):
    """A point inside the open record, and the record's contents at that point."""

    at: int
    words: array[int]


class Relabelled(NamedTuple):
    """A stretch of time that counts as `phase`, though another was open: samples taken in it do not know."""

    began: int
    ended: int
    phase: int


def _less(words: array[int], before: array[int]) -> array[int]:
    """What has been added since `before`."""
    left = array("Q", words)
    for at in _ADDED_UP:
        left[at] = max(0, words[at] - before[at])
    return left


class Listener:
    """Receives a recorder's calls. This one ignores them all; a session acts on them."""

    def second_passed(self, now: int) -> None:
        """After a step, at most once a second."""

    def sample_due(self, steps: int, now: int, duration: int) -> None:
        """Step `next_sample` has been committed."""

    def profile_due(self, steps: int) -> None:
        """Step `next_profile` has been committed."""

    def new_lap(self, name: str) -> None:
        """A name `lap()` has not seen before."""

    def step_details(self, *args: Any, **kwargs: Any) -> None:
        """What the user passed to `step()`."""

    def measure_batch(self, batch: Any) -> None:
        """A batch whose first tensor is not where the previous one's was."""

    def failed(self, error: Exception) -> None:
        """Our code has raised."""


class Recorder(Core):
    """One ring and its statistics. When off, every method is harmless."""

    __slots__ = (
        "__weakref__", "_compiled", "_device", "_empty", "_epoch", "_folded", "_graphs", "_last",
        "_listener", "_scratch", "_warm", "errors", "limit", "names", "next_profile",
        "next_sample", "relabelled", "sampled", "totals", "writer",
    )  # fmt: skip

    def __init__(self, listener: Listener | None = None) -> None:
        super().__init__()
        self._listener = listener or Listener()
        self.writer: RingWriter | MemoryRing = MemoryRing()
        self.use(self.writer)
        self._scratch, self._empty = self.scratch, self.empty
        self.names = PhaseNames()
        self.totals = Totals()
        self._epoch = self._folded = self._last = self.errors = 0
        self._graphs: dict[str, int] = graph_counts() or Counter()
        self._compiled = self._graphs["unique_graphs"]
        self._warm = False
        self._device = NoDevice()
        self.limit = NEVER
        """`gpumon analyze` limits the steps: at the limit, the script ends as if by `sys.exit()`."""
        self.next_sample = self.next_profile = NEVER
        self.sampled = False
        """Whether samples are being taken."""
        self.relabelled: list[Relabelled] = []
        """While they were, since they were last evaluated."""
        self.words[ring.H_LIVE] = LIVE[OTHER] | self.phase_began
        _made[:] = [made for made in _made if made() is not None]
        _made.append(weakref.ref(self))

    @property
    def words(self) -> memoryview:
        """The ring's words."""
        return self.writer.words

    # ── called by the core ───────────────────────────────────────────────────────────────────────────

    def periodic(self, now: int) -> None:
        """Every few steps or every second: work too slow for every step."""
        if self.steps // FOLD > self._folded // FOLD:
            self.fold()
        if self.steps >= self.next_sample:
            self._listener.sample_due(self.steps, now, self.duration)
        if self.steps >= self.next_profile:
            self._listener.profile_due(self.steps)
        if now > self.next_second:
            self._each_second(now)
        next_fold = (self._folded // FOLD + 1) * FOLD
        self.next_call = max(self.steps + 1, min(next_fold, self.next_sample, self.next_profile, self.limit))
        if self.steps >= self.limit:
            self.limit = NEVER
            raise SystemExit(0)

    def before_commit(self, duration: int) -> None:
        """Checks that only some runs, slow steps or first steps need before a record is committed."""
        if not self._graphs:
            self._graphs = graph_counts() or self._graphs
        if self._graphs["unique_graphs"] != self._compiled:
            self._compiled = self._graphs["unique_graphs"]
            self.flag(ring.F_COMPILED | ring.F_WARMUP)
        if not self._warm and self.steps < WARMUP_LIMIT:
            self._warm_up(duration)
        self._device.step_ended(self.steps + 1, self._scratch)
        self.check_record = self._device.active or self.steps < WARMUP_LIMIT

    def ring_full(self, _: int) -> None:
        """All slots are used: the ring grows or wraps to its first slot. The core then takes the writer's
        memory, even if Ctrl-C arrived meanwhile."""
        self.writer.grow()

    def failed(self, error: Exception) -> None:
        """No failure of ours may stop a training."""
        self._listener.failed(error)

    def new_lap(self, name: str) -> None:
        self._listener.new_lap(name)

    def step_details(self, *args: Any, **kwargs: Any) -> None:
        self._listener.step_details(*args, **kwargs)

    def measure_batch(self, batch: Any) -> None:
        self._listener.measure_batch(batch)

    def device_mark(self, word: int) -> None:
        """A mark, as in the ring's live word; the C core passes it signed."""
        self._device.mark(*ring.unpack_live(word & _WORD))

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────────

    def end_wait(self, phase: int, asked: bool) -> None:
        """The requested batch has arrived, and `phase` begins."""
        if asked and self.on:
            self.mark(phase)

    def exhausted(self, asked: bool) -> None:
        """No batch came: the wait belongs to the previous step, and so does what follows."""
        if asked and self.on:
            self.mark(BETWEEN)

    def count(self, samples: int, tokens: int) -> None:
        """Add a batch of this size to the open record."""
        self._scratch[W_SAMPLES] += samples
        self._scratch[W_TOKENS] += tokens

    def set_defaults(self, samples: int | None, tokens: int | None) -> None:
        """What every record holds unless the step says otherwise."""
        self._empty[W_SAMPLES] = samples or 0
        self._empty[W_TOKENS] = tokens or 0

    def log(self, seconds: float, samples: int) -> None:
        """A step timed by the caller, ending now (`log_iteration`)."""
        if not self.on:
            return
        now = clock()
        began = max(now - max(0, int(seconds * 1e9)), self.work_ended)
        self._scratch[W_PHASES + BETWEEN] += max(0, began - self.phase_began) if self.record_open else 0
        self.phase_began = began
        self.current = OTHER
        self.roll(began)
        self._scratch[W_SAMPLES] = samples
        self.work_ended = self.phase_began = now
        self.current = BETWEEN
        self.count_done()
        self.mark(BETWEEN)

    def epoch(self, number: int | None = None) -> None:
        """A new epoch begins with the next step; without a number, epochs are counted."""
        self._epoch = self._epoch + 1 if number is None else number
        self._empty[W_EPOCH] = self._epoch
        if self.work_ended:
            self.next_flags |= ring.F_EPOCH_START
        else:
            self.flag(ring.F_EPOCH_START)
            self._scratch[W_EPOCH] = self._epoch

    def close(self) -> None:
        """The open record's work is complete (hooks call this instead of `step()`)."""
        if self.record_open and not self.work_ended:
            self.work_ended = clock()
        self.count_done()

    def cut_here(self) -> Cut:
        """The open record as of the start of its open phase: a step may turn out to have begun there."""
        return Cut(self.phase_began, array("Q", self._scratch))

    def flag_cut(self, cut: Cut, flags: int) -> None:
        """Set flags on the step that ends at this cut."""
        cut.words[W_FLAGS] |= flags

    def split(self, cuts: Sequence[Cut]) -> None:
        """The open record holds several steps: commit one up to each of these cuts."""
        whole, phase, began = array("Q", self._scratch), self.current, self.phase_began
        before = array("Q", bytes(8 * ring.SLOT_WORDS))
        fresh = 0  # flags that a listener sets on the next step while one is committed
        for cut in cuts:
            self._scratch[:] = _less(cut.words, before)
            self._scratch[W_FLAGS] |= fresh
            self.phase_began = cut.at
            self.roll(cut.at)
            self.count_done()
            before, fresh = cut.words, self._scratch[W_FLAGS]
        rest = _less(whole, before)
        rest[W_BEGIN] = self._scratch[W_BEGIN]
        rest[W_FLAGS] = whole[W_FLAGS] & ~before[W_FLAGS] | fresh
        self._scratch[:] = rest
        self.current, self.phase_began = phase, began

    def restart(self) -> None:
        """Discard the open record: its contents were not a step."""
        self.record_open = False
        self.work_ended = self.phase_began

    def relabel(self, phase: int) -> None:
        """The open phase has been `phase` all along."""
        if self.sampled:
            self.relabelled.append(Relabelled(self.phase_began, clock(), phase))
        self.current = phase
        self._device.relabel(phase)

    def flag(self, flags: int) -> None:
        """Set flags on the open record."""
        self._scratch[W_FLAGS] |= flags

    def flag_next(self, flags: int) -> None:
        """Set flags on the record whose work is under way, or else on the next one."""
        if self.record_open and not self.work_ended:
            self.flag(flags)
        else:
            self.next_flags |= flags

    def register(self, name: str) -> int:
        """The id of this phase, which `lap` knows from now on."""
        phase = self.names.register(name)
        self.totals.use(phase)
        self.name_phase(name, phase)
        return phase

    @property
    def device(self) -> NoDevice:
        return self._device

    @device.setter
    def device(self, lane: NoDevice) -> None:
        self._device = lane
        self.has_device = lane.active
        self.check_record = True

    # ── occasionally ─────────────────────────────────────────────────────────────────────────────────

    def _warm_up(self, duration: int) -> None:
        """Flag the first steps, until one takes about as long as the previous one."""
        low, high = _SETTLED
        if self.steps >= WARMUP_STEPS and low * self._last < duration < high * self._last:
            self._warm = True
        if not self._warm:
            self.flag(ring.F_WARMUP)
            self._last = duration

    def fold(self) -> None:
        """Add the records not yet in the sums; their slots are contiguous."""
        waiting = self.steps - self._folded
        self._folded = self.steps
        self.totals.add(self.writer.newest(waiting))

    def spent_between(self) -> tuple[int, int]:
        """Nanoseconds between the steps, and in all, as far as they are in the sums."""
        groups = [self.totals.group(kind) for kind in (STEADY, SAMPLED)]
        return sum(one.phase_ns[BETWEEN] for one in groups), sum(one.net_ns for one in groups)

    def _each_second(self, now: int) -> None:
        """Publish what readers need less often, and let the session do its housekeeping."""
        self.next_second = now + _SECOND_NS
        self.fold()
        self.words[ring.H_OVERHEAD] = max(0, self.spent_ns)  # a correction may come before what it corrects
        self.words[ring.H_DROPPED] = self._device.skipped
        self._listener.second_passed(now)

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────

    def attach(self, writer: RingWriter) -> None:
        """Send records to this ring from now on; none was committed before, so none is lost."""
        self.fold()
        writer.words[ring.H_LIVE] = self.words[ring.H_LIVE]
        self.writer = writer
        self.use(writer)

    def next_ring(self) -> None:
        """End this ring without the open record, which belongs to the next ring; figures start over."""
        self._leave_ring(ring.S_ENDED)
        used, self.totals = self.totals.used, Totals()
        for phase in used:
            self.totals.use(phase)
        self.steps = self.done = self._folded = self._epoch = self._last = 0
        self.next_call = self.next_second = self.spent_ns = 0
        self._empty[W_EPOCH] = 0
        self._warm, self.check_record = False, True
        self.set_batch_path(None)

    def _leave_ring(self, state: int) -> None:
        """Mark the ring's end first: a Ctrl-C further down must not leave it unmarked."""
        self.words[ring.H_ENDED_MONO] = clock()
        self.words[ring.H_STATE] = state
        self.fold()
        self.words[ring.H_LIVE] = LIVE[OTHER] | clock()
        self.words[ring.H_OVERHEAD] = max(0, self.spent_ns)
        ended, self.writer = self.writer, MemoryRing()
        self.use(self.writer)
        ended.close(state)

    def switch_off(self) -> None:
        """Stop recording: this process or this loop is not ours."""
        self.on = False
        self.thread = 0

    def finish(self, state: int) -> None:
        """Commit what `step()` has closed; work it never closed is not a step. What follows the last step
        (cleanup, workers exiting) is not between two steps."""
        if not self.on:
            return
        if self.record_open and self.work_ended:
            last = self.phase_began if self.current == BETWEEN else clock()
            self.roll(last if not self.step_mode else self.work_ended)
        self._leave_ring(state)
        self.switch_off()

"""The recorder's hot path in Python: it defines what every mark means, and runs where `native.c` could not
be built. Change both together; `tests/unit/sdk/test_core.py` compares them.

A mark closes the open phase and opens another. `step()` ends a record's work; the record stays open for
`between` until the next step begins. Records are contiguous: each ends where the next begins.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .. import ring
from ..ring import (
    H_CLOSED,
    H_LIVE,
    W_BEGIN,
    W_END,
    W_FLAGS,
    W_GC,
    W_LOSS,
    W_OVERHEAD,
    W_PHASES,
    W_SAMPLES,
    W_TOKENS,
)
from .phases import BETWEEN, DATA, LIVE, OTHER, SCRATCH_WORDS, STARTS

if TYPE_CHECKING:
    from ..writer import Slots

clock = time.monotonic_ns

_WORD_MASK = (1 << 64) - 1
_CALL_NS = 1500
"""Cost of entering and leaving a mark, which cannot be measured from inside: an estimate, with cold caches
as in a training step (`tests/benchmarks/sdk`)."""
_SLOW_STEP_NS = 10_000_000
"""Chosen: torch.compile takes longer than this, so shorter steps are not checked for it."""
MOST_NESTED = 64
"""Chosen: deeper phases are counted, not remembered."""
_SHAPES_EVERY = 8
"""Chosen: the shape is read for one batch in this many; the number of samples alone is cheaper."""


def tracing() -> bool:
    """Whether torch is compiling rather than running this: it is told to trace the C version as True."""
    return False


class Core:
    """One loop, one thread, one ring. `Recorder` handles the rare cases (the methods below
    `TYPE_CHECKING`)."""

    __slots__ = (
        "_gc_began",
        "_given",
        "_known",
        "_nested",
        "_path",
        "_record_memory",
        "_ring",
        "_seen",
        "check_record",
        "current",
        "depth",
        "done",
        "duration",
        "empty",
        "gc_collections",
        "has_device",
        "next_call",
        "next_flags",
        "next_second",
        "on",
        "overhead",
        "phase_began",
        "record_open",
        "requested_at",
        "scratch",
        "spent_ns",
        "step_mode",
        "steps",
        "thread",
        "work_ended",
    )  # fmt: skip

    def __init__(self) -> None:
        self.thread = get_ident()
        """The thread that trains; 0: the recorder is off."""
        self.on = True
        self._ring: Slots | None = None
        self._record_memory = array("Q", bytes(8 * SCRATCH_WORDS))
        self.scratch = memoryview(self._record_memory)[: ring.SLOT_WORDS]
        """The open record."""
        self.empty = memoryview(array("Q", ring.EMPTY_RECORD))
        """A record's initial contents."""
        self.scratch[:] = self.empty
        self.current = OTHER
        self.phase_began = self.work_ended = clock()
        """Start of the open phase; end of the open record's work, 0 while it goes on."""
        self.requested_at = 0
        """When the batch that may begin the next record was requested; the loader may be at its end."""
        self.record_open = self.step_mode = False
        """Whether a record is open; whether nothing else marks the start of a step, so `step()` does."""
        self.steps = self.done = 0
        """Records committed; steps whose work is done (the ring's `H_CLOSED`)."""
        self.check_record = True
        """Ask `before_commit` about every record."""
        self.has_device = False
        """There is a device to time: every mark calls `device_mark`."""
        self.next_call = self.next_second = 0
        """The record, or the time, after which `periodic` is due."""
        self.next_flags = self.overhead = self.spent_ns = self.duration = 0
        self._gc_began = self.gc_collections = 0
        self._known: dict[str, int] = {}
        self._nested: list[int] = []
        self.depth = 0
        self._given: list[tuple[int, int]] = []
        self._path: tuple[Any, ...] | None = None
        self._seen = 0

    def use(self, slots: Slots | None) -> None:
        """Records go to this ring; None releases the current one."""
        self._ring = slots

    # ── calls to `Recorder` ──────────────────────────────────────────────────────────────────────────

    if TYPE_CHECKING:

        def periodic(self, now: int) -> None: ...
        def before_commit(self, duration: int) -> None: ...
        def ring_full(self, _: int) -> None: ...
        def failed(self, error: Exception) -> None: ...
        def new_lap(self, name: str) -> None: ...
        def step_details(self, *args: Any, **kwargs: Any) -> None: ...
        def device_mark(self, word: int) -> None: ...
        def measure_batch(self, batch: Any) -> None: ...

    def guarded(self, what: Callable[[Any], None], value: Any) -> None:
        """Keep our exceptions out of the loop; KeyboardInterrupt and SystemExit are meant for it."""
        try:
            what(value)
        except Exception as error:  # noqa: BLE001 — guards the loop; counted and shown
            self.failed(error)

    # ── records ──────────────────────────────────────────────────────────────────────────────────────

    def _spend(self, now: int) -> None:
        self._add(W_PHASES + self.current, now - self.phase_began)
        self.phase_began = now

    def _add(self, word: int, amount: int) -> None:
        """Add to a word of the open record, wrapping around as in C: it never raises."""
        self._record_memory[word] = (self._record_memory[word] + amount) & _WORD_MASK

    def roll(self, now: int) -> None:
        """Commit the open record, ending at `now`, and begin the next one there. Both happen even if the
        loop gets an exception meanwhile: no step is lost to Ctrl-C."""
        try:
            if self.record_open:
                self._finish_record(now)
        finally:
            self.scratch[:] = self.empty
            self.scratch[W_BEGIN] = self.phase_began = now
            self.scratch[W_FLAGS] = self.next_flags
            self.next_flags = self.work_ended = 0
            self.record_open = True
            self.current = OTHER

    def _finish_record(self, now: int) -> None:
        if now > self.phase_began:
            self._spend(now)
        self.scratch[W_END] = now
        self.duration = now - self.scratch[W_BEGIN]
        try:
            if self.check_record or self.duration > _SLOW_STEP_NS:
                self.guarded(self.before_commit, self.duration)
        finally:
            self.scratch[W_OVERHEAD] = self.overhead & _WORD_MASK
            self.spent_ns += self.overhead
            self.overhead = 0
            self.steps += 1
            if self._ring is not None:
                self._ring.commit(self.scratch)

    def _begin_phase(self, phase: int, now: int) -> None:
        """A step that begins with a wait for data is rolled only once the wait is over: if the loader turns
        out to be at its end, the wait belongs to the previous step."""
        if self.requested_at:
            if phase == DATA:
                return
            asked, self.requested_at = self.requested_at, 0
            if phase != BETWEEN:
                self.roll(asked)
                self.current = DATA
        elif self.work_ended and STARTS[phase]:
            if phase == DATA:
                self.requested_at = now
            else:
                self.roll(now)
        self._spend(now)
        self.current = phase

    def _leave(self, live: int, now: int) -> None:
        """End of every mark: publish the live phase, run what is due, add up the overhead."""
        if self._ring is not None:
            self._ring.words[H_LIVE] = LIVE[live] | now
        if self.has_device:
            self.guarded(self.device_mark, ring.pack_live(live, now))
        if self.steps and (self.steps >= self.next_call or now > self.next_second):
            self.guarded(self.periodic, now)
        self.overhead += clock() - now + _CALL_NS

    # ── marks ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def phase(self) -> int:
        """The open phase, according to the ring. Other threads ask for it, too."""
        return OTHER if self._ring is None else int(self._ring.words[H_LIVE]) >> 56

    def name_phase(self, name: str, phase: int) -> None:
        """Set the name by which `lap` knows this phase."""
        self._known[name] = phase

    def mark(self, phase: int) -> None:
        """`phase` begins. Callers that may run in any thread first check whose loop it is."""
        now = clock()
        self._begin_phase(phase, now)
        self._leave(phase, now)

    def lap(self, name: str) -> None:
        """`mark` by name; a no-op in other threads."""
        if get_ident() != self.thread:
            return
        phase = self._known.get(name) if isinstance(name, str) else None
        if phase is None:
            self.guarded(self.new_lap, name)
        else:
            self.mark(phase)

    def push(self, phase: int) -> None:
        """Open a nested phase: the outer one is paused."""
        if get_ident() == self.thread:
            if self.depth < MOST_NESTED:
                self._nested.append(self.phase)
            self.depth += 1
            self.mark(phase)

    def pop(self) -> None:
        if self.depth and get_ident() == self.thread:
            self.depth -= 1
            self.mark(self._nested.pop() if self.depth < MOST_NESTED else self._nested[-1])

    def request_batch(self) -> bool:
        """A batch is requested. Returns whether this is a wait of the loop, not one inside another phase."""
        if get_ident() != self.thread or self.depth:
            return False
        self.mark(DATA)
        return True

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────

    def set_step_values(self, samples: int | None, tokens: int | None, loss: float | None) -> None:
        """Values the user gives for the step that ends now; they override what was counted."""
        self._given = []
        words = ((W_SAMPLES, samples), (W_TOKENS, tokens))
        given = [(at, array("Q", [value])[0]) for at, value in words if value is not None]
        if loss is not None:
            given.append((W_LOSS, ring.float_bits(loss)))
        self._given = given

    def step(self, *args: Any, **kwargs: Any) -> None:
        """This step's work is done; any arguments go to `step_details`. What follows is `between`, until
        the next step begins."""
        if get_ident() != self.thread:
            return
        if args or kwargs:
            try:
                self.step_details(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 — the step counts even if its details fail
                self.failed(error)
        now = clock()
        self._work_done(now)
        self.count_done()
        self._leave(BETWEEN, now)

    def _work_done(self, now: int) -> None:
        if self.requested_at:
            self._begin_phase(OTHER, now)
        if self.work_ended:
            self._step_without_begin(self.work_ended)
        for at, word in self._given:
            self.scratch[at] = word
        self._given = []
        self._spend(now)
        self.work_ended = now
        self.current = BETWEEN
        if self.step_mode:
            self.roll(now)

    def _step_without_begin(self, closed: int) -> None:
        """Two `step()` calls with no mark between: nothing else marks the start of a step, so this one
        begins where the last one ended. What was counted as `between` was the step itself."""
        if self.record_open:
            behind = max(0, self.phase_began - closed)
            self.scratch[W_PHASES + BETWEEN] = max(0, self.scratch[W_PHASES + BETWEEN] - behind)
            self.step_mode = True
        self.phase_began = closed
        self.roll(closed)

    def count_done(self) -> None:
        """One more step has its work done; those a killed process could not commit count as lost."""
        self.done += 1
        if self._ring is not None:
            self._ring.words[H_CLOSED] = self.done

    def complete_and_begin(self, phase: int) -> None:
        """The open record's work is complete, and `phase` begins: the next step, if it can begin one."""
        now = clock()
        if self.record_open and not self.work_ended:
            self.work_ended = now
        self._begin_phase(phase, now)
        self.count_done()
        self._leave(phase, now)

    # ── garbage collections ──────────────────────────────────────────────────────────────────────────

    def collected(self, phase: str, info: Any) -> None:
        """An entry of `gc.callbacks`: times Python's own pauses inside the step."""
        if phase == "start":
            self._gc_began = clock()
        elif self._gc_began:
            self._add(W_GC, clock() - self._gc_began)
            self.gc_collections += 1
            self._gc_began = 0

    # ── batches ──────────────────────────────────────────────────────────────────────────────────────

    def set_batch_path(self, path: tuple[Any, ...] | None) -> None:
        """Path to the first tensor in a batch; None: `measure_batch` must find it."""
        self._path = path

    def count_batch(self, batch: Any) -> None:
        """Add the batch's samples to the open record. Reads the shape of one batch in `_SHAPES_EVERY`."""
        self._seen += 1
        if self._path is not None and self._seen % _SHAPES_EVERY:
            try:
                found = batch
                for key in self._path:
                    found = found[key]
                self._add(W_SAMPLES, len(found))
                return
            except Exception:  # noqa: BLE001 — a different kind of batch: measure it anew
                self._path = None
        self.guarded(self.measure_batch, batch)

    def batch_arrived(self, then: int, batch: Any, counting: bool) -> None:
        """A batch has arrived: phase `then` begins, and the batch is counted if `counting`."""
        self.mark(then)
        if counting:
            self.count_batch(batch)

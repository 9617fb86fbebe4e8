"""The device's side of a loop: an event at every mark, evaluated some steps later, once it has occurred.

Nothing here waits for the device. Marks become steps when the recorder says where a step began and ended; a
step is evaluated once its last event has occurred, and the result goes into the record then being committed.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from .. import ring
from ..statistics import NOT_STEADY
from ._kernels import KernelWindow
from ._marks import Mark, Marks, clock
from ._step import Lags, TimedStep, idle_by_phase, pieces
from ._sums import DeviceSums
from ._syncs import SyncWindow
from .absent import NoDevice

_MOST_MARKS = 256
"""Chosen: a step with more marks is not timed."""
_AT_ONCE = 4
"""Chosen: steps evaluated after each step of the loop."""
_FIRST_NS = 5_000_000
"""Chosen: what marks may cost at first, while their share of the time is small."""
BLOCK, LONGEST_PAUSE = 64, 512
"""Chosen: the fewest steps timed in a row, before the lane pauses if its marks have cost more; up to twice as
many, at random, to fit no rhythm of the loop. And the most steps it pauses for. How long a pause lasts is
settled when it begins: if it ended once the time was earned, it would end with the next long step, and a
validation every few steps would always fall into the pause."""
_INTERRUPTED_NS = 20_000
"""Chosen: a longer mark was interrupted, or the device's queue was full; that is not the mark's own cost."""


class _Ended(NamedTuple):
    """A committed record, whose marks may not all be there yet."""

    number: int
    begin: int
    end: int
    flags: int
    paused: int


class Result(NamedTuple):
    """A steady step whose idle time is known."""

    number: int
    busy_ns: int
    idle_ns: int
    lag_ns: int


class DeviceLane(NoDevice):
    """One device, and the loop that uses it."""

    active = True

    def __init__(
        self,
        marks: Marks,
        capturing: Callable[[], bool] = lambda: False,
        window: KernelWindow | None = None,
        syncs: SyncWindow | None = None,
        alone: bool = True,
    ) -> None:
        self._pool = marks
        self._alone = alone
        """Whether no other device works for this loop."""
        self._capturing = capturing
        self._window = window
        self._syncs = syncs
        self._began = clock()
        self._spent = 0
        self._on, self._was_on = True, False
        """Whether marks are recorded, and whether they were when the step began."""
        self._random = Random(BLOCK)
        self._block = self._left = BLOCK
        """Steps in this block or pause, and how many of them are still to come."""
        self._block_began = self._began
        self._marks: deque[Mark] = deque()
        self._ended: deque[_Ended] = deque()
        self._flying: deque[TimedStep] = deque()
        self._results: deque[Result] = deque()
        self._lags = Lags()
        self._sums = DeviceSums()
        self._surplus = 0
        """Negative idle ns carried over: kernels took longer than the window's."""
        self.skipped = 0
        self._captured = False

    def allow(self, share: float) -> None:
        super().allow(share)
        self._left = 0

    # ── marks ────────────────────────────────────────────────────────────────────────────────────────

    def mark(self, phase: int, now: int) -> None:
        if self._on:
            began = clock()
            mark = None if self._is_capturing() else self._pool.record(phase, now)
            if mark is None or len(self._marks) >= _MOST_MARKS:
                self._forget_marks()
            if mark is not None:
                self._marks.append(mark)
            self._spent += min(clock() - began, _INTERRUPTED_NS)
        if self._ended:
            self._cut()

    def _is_capturing(self) -> bool:
        if self._capturing():
            self._captured = True
            return True
        return False

    def relabel(self, phase: int) -> None:
        if self._marks:
            self._marks[-1].phase = phase

    def _forget_marks(self) -> None:
        while self._marks:
            self._pool.let_go(self._marks.popleft())

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────

    def step_ended(self, number: int, record: memoryview | array[int]) -> None:
        if self._on or self._flying or self._results:
            began = clock()
            self._take_step(number, record)
            self._spent += min(clock() - began, _INTERRUPTED_NS * _AT_ONCE)
        self._pause_or_go_on(record[ring.W_END])
        if self._window is not None:
            self._window.step(number, record[ring.W_FLAGS])
            if self._syncs is not None and self._window.over:
                self._syncs.step()

    def _take_step(self, number: int, record: memoryview | array[int]) -> None:
        if self._captured:
            record[ring.W_FLAGS] |= ring.F_CAPTURED
            self._captured = False
        flags = record[ring.W_FLAGS]
        times = record[ring.W_BEGIN], record[ring.W_END]
        self._ended.append(_Ended(number, *times, flags, record[ring.W_GC]))
        self._cut()
        self._evaluate()
        self._give_result(record)

    def _cut(self) -> None:
        """Turn ended records into steps; a step's last mark may come after its record was committed."""
        while self._ended:
            end = self._ended[0].end
            if self._on and (not self._marks or self._marks[-1].named < end):
                return
            self._take(self._ended.popleft())

    def _take(self, step: _Ended) -> None:
        """Make a timed step of its marks; its last mark is the next step's first."""
        inside = [mark for mark in self._marks if mark.named <= step.end]
        if len(inside) > 1 and inside[0].named == step.begin and inside[-1].named == step.end:
            for mark in inside:
                mark.holders += 1
            self._flying.append(TimedStep(step.number, step.flags, inside, step.paused))
            if self._window is not None:
                self._window.timed(step.number, inside)
        elif self._was_on:
            self.skipped += 1
        self._was_on = self._on
        while self._marks and self._marks[0].named <= step.end and self._marks[0] is not inside[-1]:
            self._pool.let_go(self._marks.popleft())

    def _pause_or_go_on(self, now: int) -> None:
        self._left -= 1
        if self._left > 0:
            return
        beyond = self._spent - _FIRST_NS - self.share * (now - self._began)
        pauses = self._on and beyond > 0
        if pauses:
            earned = self.share * max(1, now - self._block_began) / self._block
            self._block = min(LONGEST_PAUSE, 1 + int(beyond / earned))
            self._forget_marks()
        else:
            self._block = BLOCK + self._random.randrange(BLOCK)
        self._on, self._left, self._block_began = not pauses, self._block, now

    # ── results ──────────────────────────────────────────────────────────────────────────────────────

    def _evaluate(self) -> None:
        for _ in range(_AT_ONCE):
            if not self._flying:
                return
            step = self._flying[0]
            if not step.marks[-1].event.query():
                step.pending_at = clock()
                return
            self._flying.popleft()
            self._finish(step)
            for mark in step.marks:
                self._pool.let_go(mark)

    def _finish(self, step: TimedStep) -> None:
        parts = pieces(step, self._lags)
        if self._window is not None:
            self._window.evaluated(step.number, parts)
        if step.flags & NOT_STEADY:
            return
        work = self._window.work if self._window is not None else {}
        idle = idle_by_phase(parts, work, step.paused, self._alone)
        self._sums.add(parts, idle)
        if idle is None:
            return
        total = sum(part.device_ns for part in parts)
        idle_ns = sum(idle.values()) + self._surplus
        self._surplus = max(-total, min(0, idle_ns))
        idle_ns = min(total, max(0, idle_ns))
        self._sums.judged(total, idle_ns)
        lag = sum(part.lag_ns for part in parts) // len(parts)
        self._results.append(Result(step.number, total - idle_ns, idle_ns, lag))

    def _give_result(self, record: memoryview | array[int]) -> None:
        """A record carries one result; when they pile up, the oldest are dropped."""
        while len(self._results) > _AT_ONCE:
            self._results.popleft()
        if self._results:
            done = self._results.popleft()
            record[ring.W_DEVICE_SEQ] = done.number
            record[ring.W_DEVICE_BUSY] = done.busy_ns
            record[ring.W_DEVICE_STARVED] = done.idle_ns
            record[ring.W_DEVICE_LAG] = max(0, done.lag_ns)

    @property
    def idle_ratio(self) -> float | None:
        """Share of its time without work in the steady steps; None: unknown."""
        return self._sums.idle_ratio

    @property
    def kernels_per_step(self) -> float | None:
        """In the window; None: no window, or none of its kernels was this device's."""
        return self._window.causes.get("kernels") if self._window is not None else None

    def scalars(self, name: Callable[[int], str]) -> dict[str, float]:
        found = self._sums.scalars(name)
        if found and self._window is not None:
            found |= {f"device.{figure}": value for figure, value in self._window.causes.items()}
        return found

    def syncs(self) -> list[dict[str, Any]] | None:
        return self._syncs.lines if self._syncs is not None else None

    def kernels(self) -> list[dict[str, Any]] | None:
        return self._window.heaviest if self._window is not None else None

    def graph(self, name: Callable[[int], str]) -> dict[str, Any] | None:
        if self._window is None or self._window.graph is None:
            return None
        steps, graph = self._window.graph
        told = [[name(one.phase), *(round(ns / 1e3, 1) for ns in one[1:5]), *one[5:]] for one in graph]
        return {"steps": steps, "segments": told}

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
        if self._syncs is not None:
            self._syncs.close()
        self._cut()
        while self._flying and self._flying[0].marks[-1].event.query():
            self._finish(self._flying.popleft())

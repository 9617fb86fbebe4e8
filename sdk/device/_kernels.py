"""Kernels of a few steps, from torch's profiler with device activity only: how long each phase's work takes.

Events measure work and gaps together. A kernel's length does not depend on how slow the host is, so the
window's kernel times separate work from gaps in every other step. The profiler waits for the device when it
stops; that happens once, and the window's steps are flagged and excluded from the steady figures.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from .. import ring
from ._gaps import Kernel, causes
from ._graph import Segment, step_graph
from ._marks import Mark
from ._profiler import Companion, Profiler
from ._step import PhaseWork, Piece, time_by_phase

FIRST_STEP = 3
"""After the warm-up steps, which every run has."""
STEPS = 4
"""Chosen: steps in the window. The first is incomplete, because the profiler starts inside it."""
HEAVIEST, LONGEST_NAME = 8, 160
"""Chosen: kernels named, and characters kept of a name, which begins with the kernel's kind."""
SWITCH = "GPUMON_DEVICE_WINDOW"
"""Environment: 0 switches windows off."""


class KernelWindow:
    """`flag_next` flags the next step; `profiler()` makes a profiler with start and stop."""

    def __init__(
        self, profiler: Callable[[], Profiler | Companion], flag_next: Callable[[int], None]
    ) -> None:
        self._make = profiler
        self._flag_next = flag_next
        self._profiler: Profiler | Companion | None = None
        self._done = os.environ.get(SWITCH) == "0"
        self._left = 0
        self._began = 0
        self._steps: list[list[tuple[int, int]]] = []
        self._numbers: set[int] = set()
        self._device: dict[int, int] = {}
        self._kernels: dict[int, int] = {}
        self.work: dict[int, PhaseWork] = {}
        """By phase; empty until a window has been read."""
        self.causes: dict[str, float] = {}
        """Figures of the gaps; see `_gaps.causes`."""
        self.heaviest: list[dict[str, Any]] | None = None
        """The kernels that take the most time; None until a window has been read."""
        self.graph: tuple[int, list[Segment]] | None = None
        """Number of steps, and their segments for replay; None until a window has been read."""

    @property
    def over(self) -> bool:
        """Whether it has been open and no longer is."""
        return self._done and self._profiler is None

    def timed(self, number: int, marks: Sequence[Mark]) -> None:
        """A step with these marks is over."""
        if self._profiler is not None and marks[0].at >= self._began:
            self._steps.append([(mark.at, mark.phase) for mark in marks])
            self._numbers.add(number)

    def evaluated(self, number: int, parts: Sequence[Piece]) -> None:
        """A step's events have all occurred."""
        if number in self._numbers:
            for phase, took in time_by_phase(parts).items():
                self._device[phase] = max(took, self._device.get(phase, 0))
            self._combine()

    def _combine(self) -> None:
        self.work = {
            phase: PhaseWork(took, self._device[phase])
            for phase, took in self._kernels.items()
            if phase in self._device
        }

    def step(self, number: int, flags: int) -> None:
        """A record is being committed."""
        if self._profiler is not None:
            self._left -= 1
            self._flag_next(ring.F_SAMPLED)
            if not self._left:
                self.close()
        elif not self._done and number >= FIRST_STEP and not flags & ring.F_COMPILED:
            self._start()

    def _start(self) -> None:
        profiler = self._make()
        if profiler.must_wait:
            return
        self._done = True
        if profiler.start(self.abandon):
            self._profiler, self._left, self._began = profiler, STEPS, time.monotonic_ns()
            self._flag_next(ring.F_SAMPLED)

    def close(self) -> None:
        """End an open window and read it."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        found = profiler.stop()
        steps, self._steps = self._steps, []
        if steps and found.kernels:
            self._kernels = by_phase(found.kernels, steps)
            self._combine()
            self.causes = causes(found, steps[0][0][0], steps[-1][-1][0], len(steps))
            self.heaviest = heaviest(found.kernels)
            self.graph = step_graph(found, steps)

    def abandon(self) -> None:
        """End an open window without reading it: somebody else wants to profile."""
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.stop()


def by_phase(kernels: list[Kernel], steps: Sequence[Sequence[tuple[int, int]]]) -> dict[int, int]:
    """ns per step in which a kernel ran, by the phase that launched it; includes every phase of these steps.
    Overlapping kernels count once."""
    marks = sorted({mark for step in steps for mark in step})
    times = [at for at, _ in marks]
    first, last = times[0], times[-1]
    found = {phase: 0 for step in steps for _, phase in step[:-1]}
    covered = 0
    for kernel in sorted(kernels):
        fresh = kernel.end - max(kernel.begin, covered)
        covered = max(covered, kernel.end)
        if fresh > 0 and first <= kernel.launched < last:
            phase = marks[bisect_right(times, kernel.launched) - 1][1]
            found[phase] = found.get(phase, 0) + fresh
    return {phase: took // len(steps) for phase, took in found.items()}


def heaviest(kernels: Sequence[Kernel]) -> list[dict[str, Any]]:
    """Kernel names and their shares of the total kernel time."""
    times: dict[str, int] = {}
    for kernel in kernels:
        times[kernel.name] = times.get(kernel.name, 0) + kernel.end - kernel.begin
    whole = sum(times.values()) or 1
    most = sorted(times.items(), key=lambda item: -item[1])[:HEAVIEST]
    return [{"name": name[:LONGEST_NAME], "share": round(took / whole, 4)} for name, took in most]

"""What the marks of one step reveal about the device.

If nothing is launched between two marks (a wait for data, saving a checkpoint), the device's time between
them is exactly idle time. Otherwise it is work and gaps together, and only the kernels' lengths tell them
apart.

How far the device trails the host at a mark is its *lag*. The two clocks have no common zero, so a lag is
known up to a constant: it is never negative, and an event that had not occurred when queried lagged by at
least that long. Zero lag means the queue was empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..core.phases import CHECKPOINT, DATA
from ._marks import Mark, elapsed_ns

EMPTY_NS, EMPTY_SHARE = 100_000, 0.05
"""Chosen: a lag below this, or below this share of the step, means an empty queue. An event takes some
microseconds, and the host may be interrupted between reading its clock and the event."""
UNKNOWN_SHARE = 0.1
"""Chosen: if more of a step than this may be work or gaps, its idle time is unknown."""
_LAUNCHES_NOTHING = (DATA, CHECKPOINT)
"""Phases with no device work: a checkpoint is copied from the device, which is not its work."""
_USUAL = 3
"""Chosen: a phase this many times as long as in the window is doing something else. A temporarily slower
host makes gaps longer, but hardly by that much."""
_REMEMBERED = 32
"""Chosen: steps whose lags determine zero. The clocks drift apart by some microseconds per second."""


class TimedStep:
    """A step whose marks have all been recorded."""

    __slots__ = ("flags", "marks", "number", "paused", "pending_at")

    def __init__(self, number: int, flags: int, marks: list[Mark], paused: int = 0) -> None:
        self.number = number
        self.flags = flags
        self.marks = marks
        self.paused = paused
        """ns in which the host is known to have launched nothing: Python was collecting garbage."""
        self.pending_at = 0
        """When its last event was last queried and had not occurred."""


class Piece(NamedTuple):
    """From one mark to the next."""

    phase: int
    device_ns: int
    lag_ns: int
    """At its end."""
    empty: bool
    """Whether the queue was empty at its end."""


class Lags:
    """Lags of consecutive marks."""

    def __init__(self) -> None:
        self._last: Mark | None = None
        self._raw = 0
        self._zeros: deque[int] = deque(maxlen=_REMEMBERED)

    def of(self, step: TimedStep, device: Sequence[int]) -> list[int]:
        """The lag at each of the step's marks but the first."""
        if step.marks[0] is not self._last:
            self._zeros.clear()
            self._raw = 0
        raw = [self._raw]
        for (begin, end), took in zip(pairwise(step.marks), device, strict=True):
            raw.append(raw[-1] + took - (end.at - begin.at))
        self._last, self._raw = step.marks[-1], raw[-1]
        self._zeros.append(max(-min(raw), step.pending_at - step.marks[-1].at - raw[-1]))
        zero = max(self._zeros)
        return [one + zero for one in raw[1:]]


def pieces(step: TimedStep, lags: Lags) -> list[Piece]:
    device = [elapsed_ns(begin, end) for begin, end in pairwise(step.marks)]
    limit = max(EMPTY_NS, EMPTY_SHARE * sum(device))
    behind = lags.of(step, device)
    parts = zip(step.marks, device, behind, strict=False)
    return [Piece(mark.phase, took, lag, lag <= limit) for mark, took, lag in parts]


class PhaseWork(NamedTuple):
    """A phase in a window's steps, in ns per step."""

    kernels: int
    device_ns: int
    """From its start to its end on the device, in the longest of the steps."""


def time_by_phase(parts: Sequence[Piece]) -> dict[int, int]:
    """ns on the device; a phase may occur several times (micro-batches)."""
    found: dict[int, int] = {}
    for part in parts:
        found[part.phase] = found.get(part.phase, 0) + part.device_ns
    return found


def idle_by_phase(
    parts: Sequence[Piece], window: Mapping[int, PhaseWork], paused: int = 0, alone: bool = True
) -> dict[int, int] | None:
    """Idle ns by phase, negative if this step's kernels took longer than the window's. None: unknown.
    `paused`: see `TimedStep`. Not `alone`: a queue that is not empty may wait for another device."""
    times = time_by_phase(parts)
    total = sum(times.values())
    if alone and min(part.lag_ns for part in parts) > total:
        return {}  # always behind by more than a step: the queue cannot have run empty
    seen = {
        phase
        for phase, took in times.items()
        if phase in window and _is_usual(took - paused, window[phase], total)
    }
    if _unknown(parts, seen, alone) > UNKNOWN_SHARE * total:
        return None
    idle = {phase: times[phase] - window[phase].kernels for phase in seen}
    return idle | {phase: times[phase] for phase in _LAUNCHES_NOTHING if phase in times and phase not in seen}


def _is_usual(took: int, work: PhaseWork, total: int) -> bool:
    """False for, say, an evaluation that no step of the window had: its kernels were not seen."""
    return took <= max(_USUAL * work.device_ns, work.device_ns + EMPTY_SHARE * total)


def _unknown(parts: Sequence[Piece], seen: Collection[int], alone: bool) -> int:
    """ns that may be work or gaps."""
    known = {*_LAUNCHES_NOTHING, *seen}
    return sum(part.device_ns for part in parts if (part.empty or not alone) and part.phase not in known)

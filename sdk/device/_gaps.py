"""Why the device was idle between two kernels of a window: a copy, or a host that had waited for it.

The wait is not what a synchronization costs: the device works meanwhile. It costs the gap that begins during
the wait, because the host then launches late; at most the wait, which is how much earlier the host would be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

EXCHANGE = ("nccl", "rccl")
"""Found in the names of kernels that exchange data between ranks."""
INTO, OUT_OF = "HtoD", "DtoH"
"""Found in the names of copies to and from the device."""


class Span(NamedTuple):
    """A span of time, in ns of the host's clock."""

    begin: int
    end: int


class Kernel(NamedTuple):
    """A piece of device work: when it ran, and when the host launched it."""

    begin: int
    end: int
    launched: int
    name: str = ""


class Activity(NamedTuple):
    """What a profiler saw."""

    kernels: list[Kernel]
    copies: list[Span]
    """From the host to the device."""
    pageable: list[Span]
    """Those copies that come from pageable memory."""
    waits: list[Span]
    """The host waiting for the device."""
    moves: Sequence[Kernel] = ()
    """Copies between host and device, in either direction, as work in their stream."""
    holds: Sequence[Span] = ()
    """Calls that copy from pageable memory: they block the host until done."""
    launches: Sequence[Span] = ()
    """Calls that launch a kernel."""


def causes(seen: Activity, first: int, last: int, steps: int) -> dict[str, float]:
    """Figures of a window from `first` to `last`: seconds and counts per step."""
    idle = copying = waiting = 0
    for gap in _gaps(sorted(seen.kernels), first, last):
        idle += gap.end - gap.begin
        copied = sum(_overlap(gap, copy) for copy in seen.copies)
        copied = min(copied, gap.end - gap.begin)
        copying += copied
        waiting += min(_waited(gap, seen.waits), gap.end - gap.begin - copied)
    found = {
        "window_s": (last - first) / 1e9,
        "gap_s": idle / 1e9,
        "copy_idle_s": copying / 1e9,
        "sync_idle_s": waiting / 1e9,
        "copy_s": _inside(seen.copies, first, last) / 1e9,
        "pageable_s": _inside(seen.pageable, first, last) / 1e9,
        "wait_s": _inside(seen.waits, first, last) / 1e9,
        "comm_s": _exposed([one for one in seen.kernels if first <= one.launched < last]) / 1e9,
        "kernels": float(sum(first <= one.launched < last for one in seen.kernels)),
        "syncs": float(sum(first <= one.begin < last for one in seen.waits)),
    }
    return {name: value / steps for name, value in found.items()}


def _gaps(kernels: Sequence[Kernel], first: int, last: int) -> Iterator[Span]:
    """Gaps between kernels, clipped to the window: an idle device has no lag."""
    covered = kernels[0].end if kernels else last
    for kernel in kernels:
        begin, end = max(covered, first), min(kernel.begin, last)
        if end > begin:
            yield Span(begin, end)
        covered = max(covered, kernel.end)


def _exposed(kernels: Sequence[Kernel]) -> int:
    """How long the exchange between ranks ran alone, including waits for a late rank."""
    computing = [one for one in kernels if not any(word in one.name.lower() for word in EXCHANGE)]
    return _union(kernels) - _union(computing)


def _union(kernels: Sequence[Kernel]) -> int:
    """ns during which at least one of them ran."""
    total = covered = 0
    for kernel in sorted(kernels):
        total += max(0, kernel.end - max(kernel.begin, covered))
        covered = max(covered, kernel.end)
    return total


def _overlap(one: Span, other: Span) -> int:
    return max(0, min(one.end, other.end) - max(one.begin, other.begin))


def _waited(gap: Span, waits: Sequence[Span]) -> int:
    """How long the host had waited when the gap began."""
    return max((one.end - one.begin for one in waits if one.begin <= gap.begin <= one.end), default=0)


def _inside(spans: Sequence[Span], first: int, last: int) -> int:
    return sum(one.end - one.begin for one in spans if first <= one.begin < last)

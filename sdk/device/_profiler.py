"""torch's profiler for a few steps: only the device's activity, read without a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..profiling import turn
from ._gaps import INTO, Activity, Kernel, Span

_MOST_EVENTS = 100_000
"""Chosen: a window with more is not read; that would take a noticeable part of a second."""
_COPY, _FILL = "Memcpy", "Memset"
_PAGEABLE, _WITHIN = "Pageable", "DtoD"
_WAIT = "Synchronize"
"""Found in the names of copies and calls, as reported by CUPTI and ROCm."""


_NOTHING = Activity([], [], [], [])


class Profiler:
    """torch's profiler for one device, unless somebody else is using it. It sees the other devices of the
    process as well: `Companion`."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._device = device
        self._profile: Any = None
        self._seen: Mapping[int, Activity] = {}
        self._restore: Callable[[], None] = lambda: None

    @property
    def must_wait(self) -> bool:
        """A requested profile is being taken: ours comes after it."""
        return turn.is_ours(self._torch)

    @property
    def running(self) -> bool:
        return self._profile is not None

    def start(self, wanted_elsewhere: Callable[[], None]) -> bool:
        """Begin; False if impossible. A process can run only one profiler: `wanted_elsewhere` is called when
        the training starts its own."""
        if not turn.is_free(self._torch):
            return False
        made = self._torch.autograd.profiler.profile(
            use_device=self._device.type, use_cpu=False, use_kineto=True
        )
        with turn.quiet():
            made.__enter__()
        self._profile = made
        self._restore = turn.make_way(self._torch, lambda: self._give_up(wanted_elsewhere))
        return True

    def _give_up(self, wanted_elsewhere: Callable[[], None]) -> None:
        wanted_elsewhere()
        self._seen = {}

    def stop(self) -> Activity:
        """End, which waits for the device; empty if too much was recorded."""
        made, self._profile = self._profile, None
        if made is None:
            return _NOTHING
        self._restore()
        with turn.quiet():
            made.__exit__(None, None, None)
        events = made.kineto_results.events()
        self._seen = _read(events) if len(events) <= _MOST_EVENTS else {}
        return self.of(self._device.index)

    def of(self, index: int) -> Activity:
        """What the last profile saw of a device."""
        return self._seen.get(index, _NOTHING)


class Companion:
    """Another device's share of what `leader` profiles; it is started and stopped after the leader."""

    def __init__(self, leader: Profiler, index: int) -> None:
        self._leader = leader
        self._index = index

    @property
    def must_wait(self) -> bool:
        return self._leader.must_wait and not self._leader.running

    def start(self, wanted_elsewhere: Callable[[], None]) -> bool:
        """Whether the leader has started; when it gives up, there is nothing to read."""
        return self._leader.running

    def stop(self) -> Activity:
        return self._leader.of(self._index)


class _Work(NamedTuple):
    """A piece of device work, and the call that launched it."""

    span: Span
    name: str
    call: int


def _read(events: Sequence[Any]) -> dict[int, Activity]:
    """Each device's work, with wall-clock ns converted to the clock of our marks."""
    offset = time.time_ns() - time.monotonic_ns()
    calls: dict[int, Span] = {}
    work: dict[int, list[_Work]] = {}
    waits: list[Span] = []
    for event in events:
        begin, name = event.start_ns() - offset, event.name()
        span = Span(begin, begin + event.duration_ns())
        if event.device_type().name == "CPU":
            calls.setdefault(event.correlation_id(), span)
            if _WAIT in name:
                waits.append(span)
        elif not name.startswith(_FILL):
            of_device = work.setdefault(event.device_index(), [])
            of_device.append(_Work(span, name, event.correlation_id()))
    return {index: _activity(done, calls, waits) for index, done in work.items()}


def _activity(work: Sequence[_Work], calls: Mapping[int, Span], waits: list[Span]) -> Activity:
    kernels: list[Kernel] = []
    moves: list[Kernel] = []
    for one in work:
        begin = calls[one.call].begin if one.call in calls else one.span.begin
        (moves if _is_copy(one) else kernels).append(Kernel(*one.span, begin, one.name))
    copies = [one for one in work if _is_copy(one)]
    into = [one for one in copies if INTO in one.name]
    held = [one for one in copies if _PAGEABLE in one.name and one.call in calls]
    # A copy to or from pageable memory ends with its call: the host waits in it.
    return Activity(
        kernels,
        [one.span for one in into],
        [one.span for one in into if _PAGEABLE in one.name],
        waits + [calls[one.call] for one in held if INTO not in one.name],
        moves,
        [calls[one.call] for one in held if INTO in one.name and calls[one.call].end >= one.span.begin],
        [calls[one.call] for one in work if one.call in calls and not _is_copy(one)],
    )


def _is_copy(one: _Work) -> bool:
    """A copy between host and device; one within the device is work like any other."""
    return one.name.startswith(_COPY) and _WITHIN not in one.name

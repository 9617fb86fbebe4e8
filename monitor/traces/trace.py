"""What we keep of a trace: work on devices, runtime calls, and what the host was doing."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NS = 1e9
"""Nanoseconds per second: traces use whole nanoseconds, reports use seconds."""
WorkKind = Literal["compute", "communication", "memory"]
RangeKind = Literal["op", "annotation", "python"]
Thread = tuple[int | str, int | str]
"""Host process and thread, as the trace names them."""


class Call(Struct, frozen=True, gc=False):
    """A call to the device's runtime or driver: a launch, a copy, a synchronisation …"""

    begin: int
    """Nanoseconds since the trace's first event, like all times here."""
    end: int
    name: str
    thread: Thread


class Work(Struct, frozen=True, gc=False):
    """A kernel, copy or fill that ran on a device."""

    begin: int
    end: int
    name: str
    kind: WorkKind
    device: int
    stream: int
    bytes: int | None = None
    launch: Call | None = None
    """The call that queued it, if the trace has it."""


class Range(Struct, frozen=True, gc=False):
    """A named range of host time: an operator, an annotation, a Python function."""

    begin: int
    end: int
    name: str
    kind: RangeKind
    thread: Thread
    stack: str = ""
    """The operator's call stack, innermost frame first, if the profiler recorded one."""


class Card(Struct, frozen=True):
    """What the trace says about a GPU."""

    id: int
    name: str
    compute_major: int | None = None
    memory_bytes: int | None = None


class Trace(Struct, frozen=True):
    """One file, meaning one process: usually one rank."""

    source: str
    work: tuple[Work, ...]
    """Sorted by begin."""
    calls: tuple[Call, ...]
    ranges: tuple[Range, ...]
    cards: tuple[Card, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    events: int = 0
    """Events in the file, including those that are not kept."""

"""What is kept of a trace: work on devices, calls of the runtime, and what the host was in."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NS = 1e9
"""Nanoseconds in a second: times of a trace are whole nanoseconds, those of a report seconds."""
WorkKind = Literal["compute", "communication", "memory"]
RangeKind = Literal["op", "annotation", "python"]
Thread = tuple[int | str, int | str]
"""Process and thread of the host, as the trace names them."""


class Call(Struct, frozen=True, gc=False):
    """A call of the device's runtime or driver: a launch, a copy, a synchronisation …"""

    begin: int
    """Nanoseconds since the trace's first event, as every time here."""
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
    """The call that put it into the queue, if the trace has it."""


class Range(Struct, frozen=True, gc=False):
    """A stretch of host time with a name: an operator, an annotation, a Python function."""

    begin: int
    end: int
    name: str
    kind: RangeKind
    thread: Thread
    stack: str = ""
    """The operator's call stack, innermost frame first, where the profiler kept one."""


class Card(Struct, frozen=True):
    """What the trace says about a GPU."""

    id: int
    name: str
    compute_major: int | None = None
    memory_bytes: int | None = None


class Trace(Struct, frozen=True):
    """One file, that is one process: usually one rank."""

    source: str
    work: tuple[Work, ...]
    """By begin."""
    calls: tuple[Call, ...]
    ranges: tuple[Range, ...]
    cards: tuple[Card, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    events: int = 0
    """Events in the file, those that are not kept included."""

"""What the host did, as time sets: waiting for data, inside blocking copies, in operators, in syncs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from monitor.traces.intervals import Interval, Intervals, union
from monitor.traces.trace import Call, Thread, Trace
from monitor.traces.window import STEP

SYNC_CALLS = {
    f"{prefix}{name}Synchronize"
    for prefix, names in (
        ("cuda", ("Device", "Stream", "Event", "Thread")),
        ("hip", ("Device", "Stream", "Event")),
        ("cu", ("Ctx", "Stream", "Event")),
    )
    for name in names
}
BLOCKING_COPY_CALLS = {"cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream"}
"""Copies that return only when the data has arrived, whatever the kind of memory."""
DATA_WAITS = "enumerate(DataLoader)"
"""How torch's DataLoader labels the wait for the next batch."""


class Host(Struct, frozen=True):
    """How the launching threads spent their time, over the whole trace."""

    data: Intervals
    copying: Intervals
    working: Intervals
    """In any operator or runtime call."""
    main: Thread | None
    """The thread with the profiler's steps, else the one that launches most."""
    syncs: tuple[Call, ...]
    """Calls in which a launching thread waited for the device, including copies to the host."""


def host_of(trace: Trace) -> Host:
    threads = Counter(one.launch.thread for one in trace.work if one.launch is not None)
    to_host, to_device = _blocking_copies(trace)
    syncs = [call for call in trace.calls if call.name in SYNC_CALLS and call.thread in threads]
    return Host(
        data=union((one.begin, one.end) for one in trace.ranges if one.name.startswith(DATA_WAITS)),
        copying=union((call.begin, call.end) for call in to_device),
        working=union(_working(trace, set(threads))),
        main=_main(trace, threads),
        syncs=tuple(sorted([*syncs, *to_host], key=lambda call: call.begin)),
    )


def _main(trace: Trace, threads: Counter[Thread]) -> Thread | None:
    step = next((one for one in trace.ranges if STEP.match(one.name)), None)
    if step is not None:
        return step.thread
    return threads.most_common(1)[0][0] if threads else None


def _blocking_copies(trace: Trace) -> tuple[list[Call], list[Call]]:
    """Blocking copy calls: to the host (which synchronise), and to the device."""
    to_host, to_device = [], []
    for one in trace.work:
        if one.kind != "memory" or one.launch is None:
            continue
        if "Pageable" not in one.name and one.launch.name not in BLOCKING_COPY_CALLS:
            continue
        if "DtoH" in one.name:
            to_host.append(one.launch)
        elif "HtoD" in one.name:
            to_device.append(one.launch)
    return to_host, to_device


def _working(trace: Trace, threads: set[Thread]) -> Iterable[Interval]:
    for one in trace.ranges:
        if one.kind == "op" and one.thread in threads:
            yield one.begin, one.end
    for call in trace.calls:
        if call.thread in threads:
            yield call.begin, call.end

"""Places on the host that keep the device waiting: synchronisations, and code outside any operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from monitor.traces.enclosing import places
from monitor.traces.host import Host
from monitor.traces.intervals import Intervals
from monitor.traces.report import Outside, Sync
from monitor.traces.trace import NS, Trace


def sync_sites(trace: Trace, host: Host, window: tuple[int, int], caused: Mapping[int, int]) -> list[Sync]:
    """One entry per place, costliest first. `caused`: index in `host.syncs` → idle nanoseconds."""
    inside = [at for at, call in enumerate(host.syncs) if call.end >= window[0] and call.begin <= window[1]]
    found = places([(host.syncs[at].thread, host.syncs[at].begin) for at in inside], trace.ranges)
    sites = defaultdict(list)
    for at, place in zip(inside, found, strict=True):
        sites[host.syncs[at].name, place.operator, place.where].append(at)
    rows = [
        Sync(
            call=call,
            operator=operator,
            where=where,
            count=len(members),
            wait_seconds=sum(host.syncs[at].end - host.syncs[at].begin for at in members) / NS,
            idle_after_seconds=sum(caused.get(at, 0) for at in members) / NS,
        )
        for (call, operator, where), members in sites.items()
    ]
    return sorted(rows, key=lambda row: (-row.idle_after_seconds, -row.wait_seconds))


def outside_sites(trace: Trace, host: Host, stretches: Intervals) -> list[Outside]:
    """The functions the main thread was in during these intervals, longest first."""
    if host.main is None:
        return []
    moments = [(host.main, (begin + end) // 2) for begin, end in stretches]
    sites = defaultdict(list)
    for place, (begin, end) in zip(places(moments, trace.ranges), stretches, strict=True):
        sites[place.where].append(end - begin)
    rows = [Outside(where, len(lengths), sum(lengths) / NS) for where, lengths in sites.items()]
    return sorted(rows, key=lambda row: -row.idle_seconds)

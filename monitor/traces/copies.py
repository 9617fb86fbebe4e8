"""Copies by direction and kind of host memory."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from monitor.traces.report import Copies
from monitor.traces.trace import NS, Work

COPY = re.compile(r"^Memcpy (?P<direction>\w+)(?: \((?P<ends>[^)]*)\))?")
"""Kineto's names: Memcpy HtoD (Pageable -> Device)."""


def copies(work: Iterable[Work]) -> list[Copies]:
    """Longest total first."""
    groups = defaultdict(list)
    for one in work:
        if one.kind == "memory" and (match := COPY.match(one.name)):
            groups[match["direction"], _host_memory(match["ends"] or "")].append(one)
    rows = [_row(*key, members) for key, members in groups.items()]
    return sorted(rows, key=lambda row: -row.seconds)


def _host_memory(ends: str) -> str | None:
    for kind in ("Pageable", "Pinned"):
        if kind in ends:
            return kind.lower()
    return None


def _row(direction: str, memory: str | None, members: list[Work]) -> Copies:
    seconds = sum(one.end - one.begin for one in members) / NS
    sizes = [one.bytes for one in members if one.bytes is not None]
    known = sum(sizes) if len(sizes) == len(members) else None
    rate = known / seconds if known is not None and seconds else None
    return Copies(direction, memory, len(members), seconds, known, rate)

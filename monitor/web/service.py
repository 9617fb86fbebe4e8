"""Shared by the routes: settings, the feed, the metrics pages, and whether the data is fresh."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from monitor.model import facts
from monitor.model.settings import Settings
from monitor.model.snapshot import Snapshot
from monitor.model.units import duration, seconds
from monitor.web.client_limits import Streams
from monitor.web.families import OWN, families
from monitor.web.families.base import Limits, Own
from monitor.web.feed import Feed
from monitor.web.metrics import Metrics
from monitor.web.peer import peer_of
from monitor.web.privacy import Viewer, viewer_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from monitor.store.store import Store


@dataclass(slots=True)
class Service:
    settings: Settings
    feed: Feed = field(default_factory=Feed)
    store: Store | None = None
    exports: bool = True
    """Whether `/metrics` has what the snapshots have; if other daemons export that, it is about this one."""
    own: Own = field(default_factory=Own)
    streams: Streams = field(default_factory=Streams)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        chosen = self.settings
        limits = Limits(
            runs=chosen.max_runs,
            ranks=chosen.max_ranks,
            scalars=chosen.max_scalars,
            processes=chosen.max_processes,
            per_link=chosen.per_link,
        )
        self.own.streams = self.streams
        self.metrics = Metrics(self.own, limits, families(chosen.compat) if self.exports else OWN)

    def viewer(self, request: Request) -> Viewer:
        return viewer_of(peer_of(request.scope), show_commands=self.settings.show_commands)

    def not_ready(self) -> str | None:
        """Why the data cannot be relied on now; None if it can."""
        served = self.feed.latest
        if served is None:
            return "no snapshot has been made yet"
        snapshot = served.snapshot
        age = facts.stale_age(snapshot, time.monotonic())
        if age is not None:
            interval = seconds(snapshot.interval_seconds)
            return f"the newest snapshot is {duration(age)} old (interval {interval})"
        return _source_trouble(snapshot)


def _source_trouble(snapshot: Snapshot) -> str | None:
    source = snapshot.source
    if source.kind != "none" and not source.ok:
        return f"the GPU source ({source.kind}) does not answer: {source.detail or 'no reason given'}"
    gone = [gpu for gpu in snapshot.gpus if gpu.state != "ok"]
    if gone and len(gone) == len(snapshot.gpus):
        first = gone[0]
        return f"no GPU answers (GPU {first.index}: {first.state}, {first.state_detail or 'no detail'})"
    return None

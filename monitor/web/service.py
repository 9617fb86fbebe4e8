"""What the routes share: settings, the feed, the metrics pages, and whether the data is fresh."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from monitor.settings import Settings
from monitor.snapshot import Snapshot
from monitor.web.families.base import Limits, Own
from monitor.web.feed import Feed
from monitor.web.metrics import Metrics

if TYPE_CHECKING:
    from monitor.store.store import Store

STALE_INTERVALS = 3.0


@dataclass(slots=True)
class Service:
    settings: Settings
    feed: Feed = field(default_factory=Feed)
    store: Store | None = None
    own: Own = field(default_factory=Own)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        limits = Limits(self.settings.max_runs, self.settings.max_ranks, self.settings.max_scalars)
        self.metrics = Metrics(self.own, limits)

    def not_ready(self) -> str | None:
        """Why the data cannot be relied on now; None when it can."""
        served = self.feed.latest
        if served is None:
            return "no snapshot has been made yet"
        snapshot = served.snapshot
        age = time.monotonic() - snapshot.monotonic
        if age > max(STALE_INTERVALS * snapshot.interval_seconds, 0.5):
            return f"the newest snapshot is {age:.1f} s old (interval {snapshot.interval_seconds:g} s)"
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

"""Training runs: what the rings say, with each rank's GPU and processes."""

from __future__ import annotations

from monitor.pipeline.draft import Draft, Setup


class RunCollector:
    name = "runs"

    def __init__(self, setup: Setup) -> None:
        """Nothing to open: another collector opens the rings."""

    def collect(self, draft: Draft) -> None:
        if draft.rings is not None:
            draft.runs = draft.rings.runs(draft.now, draft.gpus, draft.processes)
            draft.dropped.update(draft.rings.dropped)
            draft.ring_trouble = draft.rings.trouble.counts()

    def close(self) -> None:
        """Nothing of its own is open."""

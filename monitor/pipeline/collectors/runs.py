"""Training runs: what the rings tell, with the GPU and the processes of each rank."""

from __future__ import annotations

from monitor.pipeline.draft import Draft, Setup


class RunCollector:
    name = "runs"

    def __init__(self, setup: Setup) -> None:
        """The rings are opened by the collector that reads them."""

    def collect(self, draft: Draft) -> None:
        if draft.rings is not None:
            draft.runs = draft.rings.runs(draft.now, draft.gpus, draft.processes)
            draft.dropped.update(draft.rings.dropped)
            draft.ring_trouble = draft.rings.trouble.counts()

    def close(self) -> None:
        """Nothing of its own is open."""

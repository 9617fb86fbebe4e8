"""New step records of every training process. Read first, because the rings of fast loops fill up."""

from __future__ import annotations

from monitor.pipeline.draft import Draft, Setup
from monitor.runs.reader import RunReader


class RingCollector:
    name = "rings"

    def __init__(self, setup: Setup) -> None:
        chosen = setup.settings
        self._reader = RunReader(chosen.dir, sink=setup.sink, keep_ended=chosen.keep_ended, run=setup.run)

    def collect(self, draft: Draft) -> None:
        draft.rings = self._reader
        (self._reader.catch_up if draft.single else self._reader.poll)(draft.now)

    def close(self) -> None:
        self._reader.close()

"""The training processes, their children, and whatever else is on a GPU."""

from __future__ import annotations

from monitor.pipeline.draft import Draft, Setup


class ProcessCollector:
    name = "processes"

    def __init__(self, setup: Setup) -> None:
        self._left_out = 0

    def collect(self, draft: Draft) -> None:
        trainers = draft.rings.pids() if draft.rings else {}
        on_gpus = {process.pid for gpu in draft.gpus for process in gpu.processes}
        if draft.machine is not None:
            draft.processes, left_out = draft.machine.processes(draft.now, trainers, on_gpus)
            self._left_out += left_out
        draft.dropped["processes"] = self._left_out

    def close(self) -> None:
        """Nothing of its own is open."""

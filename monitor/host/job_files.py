"""Which Slurm jobs were assigned which GPUs, from files that a prolog writes: one per GPU, named after it
(see `device_ids`), one job id per line. Files written for dcgm-exporter's job mapping work as well.
"""

from __future__ import annotations

import os
from pathlib import Path

from monitor.host.procfs import Every, read_text

READ_SECONDS = 5.0
"""Our choice."""
MOST_FILES = 256
MOST_JOBS = 64
"""Per GPU."""


class JobFiles:
    """Call `jobs` once a tick."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._due = Every(READ_SECONDS)
        self._jobs: dict[str, tuple[str, ...]] = {}

    def jobs(self, now: float) -> dict[str, tuple[str, ...]]:
        """File name → the jobs in it."""
        if self._due.due(now):
            self._jobs = {name: self._read(name) for name in self._names()}
        return self._jobs

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self._folder))[:MOST_FILES]
        except OSError:
            return []

    def _read(self, name: str) -> tuple[str, ...]:
        words = (read_text(self._folder / name) or "").split()
        return tuple(dict.fromkeys(word for word in words if word.replace("_", "").isalnum()))[:MOST_JOBS]

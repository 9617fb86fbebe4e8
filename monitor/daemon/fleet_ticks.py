"""`gpumon daemon --prometheus URL`: the live page of runs over many machines.

It takes no readings of its own: in place of the pipeline, Prometheus is asked what the daemons of all
machines have told it.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from monitor.fleet.fleet import REFRESH_SECONDS, Fleet
from monitor.model.errors import UserError
from monitor.model.settings import Settings
from monitor.model.snapshot import Snapshot

log = logging.getLogger("gpumon.fleet")


class FleetTicks:
    """Takes the place of a `Pipeline`. Raises `UserError` at the start if nobody answers."""

    def __init__(self, fleet: Fleet, settings: Settings) -> None:
        self.settings = _settings(settings)
        self._fleet = fleet
        self._last = fleet.snapshot()
        self._trouble: str | None = None

    def tick(self) -> Snapshot:
        """What is known now. While Prometheus does not answer, the last picture, which is shown as old."""
        try:
            self._last = self._fleet.snapshot(self._last.seq + 1)
            self._say(None)
        except UserError as error:
            self._say(error.sentence)
        return self._last

    def _say(self, trouble: str | None) -> None:
        if trouble != self._trouble:
            log.warning("%s", trouble or f"{self._fleet.api.url} answers again")
        self._trouble = trouble

    def watched(self, snapshot: Snapshot) -> str:
        count = len(snapshot.runs)
        return f"{count} run{'' if count == 1 else 's'} on the machines that {self._fleet.api.url} scrapes"

    def close(self) -> None:
        """Nothing is open between two questions."""


def _settings(settings: Settings) -> Settings:
    """What a machine's daemon has to itself stays with that one: rings, socket, history, what it pushes. All
    here comes from metrics, in which nobody's code is quoted, so everybody may see it."""
    return replace(
        settings, interval=REFRESH_SECONDS, socket=None, store=None, otlp=None, dir=(), show_commands=True
    )

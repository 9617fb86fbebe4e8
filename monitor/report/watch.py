"""`gpumon run` from the outside: watch one run while it lasts, then summarise it in a few lines.

If there is a daemon, it watches and is asked at the end. Otherwise a thread of the `gpumon run` process
(never of the training) reads the run's ring and the machine periodically. Until the run has a ring there is
nothing to read, and nothing is imported.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from monitor.model.errors import UserError
from monitor.report.milestones import SeenFile

if TYPE_CHECKING:
    from monitor.client import Client
    from monitor.model.run import Run
    from monitor.report.observation import Observation
    from monitor.report.report import Report

LOOK_SECONDS = 0.25
"""Chosen: how often to check whether the run has a ring. Each check lists one folder."""
PACE = ((15, 1.0), (60, 2.0), (1 << 62, 5.0))
"""(readings, seconds between them): every second while findings still change, then as often as a run of
minutes needs. The ring keeps ten minutes of steps, so nothing is missed."""


class Line(Protocol):
    """Shows the state of the run while it lasts."""

    def draw(self, run: Run | None) -> None: ...
    def close(self) -> None: ...


def terminal_line() -> Line:
    from monitor.report.live_line import LiveLine

    return LiveLine()


class RunWatcher:
    """Watches the run with this id; `finish` returns the report. Harmless if there is nothing to see. `line`
    makes the line drawn after every reading, if any."""

    def __init__(
        self, run_id: str, *, connect: str | None = None, line: Callable[[], Line] | None = None
    ) -> None:
        self.run_id = run_id
        self._make_line = line
        self._line: Line | None = None
        self._client = _daemon(connect) if connect else None
        self._seen = SeenFile()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gpumon-watch", daemon=True)
        self._observation: Observation | None = None
        self._folders: Iterable[str | os.PathLike[str]] | None = None
        self._error: UserError | None = None

    def environment(self) -> dict[str, str]:
        """The environment variables the command needs to be seen."""
        return self._seen.environment()

    def start(self) -> None:
        self._thread.start()

    def _watch(self) -> None:
        try:
            while not self._has_ring():
                if self._stop.wait(LOOK_SECONDS):
                    return
            self._observe()
        except UserError as error:  # a broken setting must not disturb the command
            self._error = error

    def _observe(self) -> None:
        """The wait until the next reading starts when the last one has ended, however long it took."""
        observation = self._begin()
        readings, wait = 0, PACE[0][1] / 2
        while not self._stop.wait(wait):
            observation.tick()
            self._draw(observation)
            readings += 1
            wait = next(seconds for most, seconds in PACE if readings < most)

    def _draw(self, observation: Observation) -> None:
        if self._make_line is None:
            return
        if self._line is None:
            self._line = self._make_line()
        self._line.draw(observation.look())

    def _begin(self) -> Observation:
        if self._observation is None:
            with _collecting_later():
                from monitor.report.observation import Observation

                client = self._client or _daemon(None)
                self._observation = Observation(self.run_id, client, shown=self._make_line is not None)
        return self._observation

    def _has_ring(self) -> bool:
        if self._folders is None:
            from monitor.model import settings

            self._folders = settings.load().dir
        return any(_has_ring(folder, self.run_id) for folder in self._folders)

    def finish(self, exit_code: int | None = None) -> Report:
        """The run is over: read once more and summarise."""
        self._stop.set()
        self._thread.join(10.0)
        if self._line is not None:
            self._line.close()
        if self._error is not None:
            raise self._error
        seen = self._seen.read()
        try:
            if self._observation is None and not self._has_ring() and self._client is None:
                from monitor.report.report import make_report

                return make_report(None, self.run_id, exit_code, seen)
            return self._begin().report(exit_code, seen)
        finally:
            self._seen.close()
            if self._observation is not None:
                self._observation.close()


@contextlib.contextmanager
def _collecting_later() -> Iterator[None]:
    """What is made while modules are imported stays: collecting it as garbage, now or later, is in vain."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _has_ring(folder: str | os.PathLike[str], run_id: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.startswith(run_id) for entry in entries)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # a folder we may not list: the reader knows how to find the ring


def _daemon(connect: str | None) -> Client | None:
    from monitor.report.observation import daemon

    return daemon(connect)

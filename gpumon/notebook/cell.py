"""One cell under `%%gpumon`. The kernel starts the SDK and shows the output of a second process, which reads
the run's ring, judges it and lays out the report (monitor/cli/cell.py).
"""

from __future__ import annotations

import contextvars
import importlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from ..ours import HOME, sdk

RUN_ID = "GPUMON_RUN_ID"
REPORT_SECONDS = 60.0
"""Chosen: how long a cell that has ended waits for its report."""


class WatchedCell:
    """From the start of a cell to its report."""

    def __init__(self, name: str, live: bool) -> None:
        """`live`: this frontend can update what it has shown; a terminal cannot."""
        self._before = os.environ.get(RUN_ID)
        self._monitor, self._ours = self._record(name)
        self._last: dict[str, str] = {}
        """The other process's last message."""
        self._line = _show({"text/plain": "gpumon: waiting for the first step"}) if live else None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 — it lives as long as the child
        try:
            self._child = self._start(self._monitor.run_id)
        except OSError:
            self._stop(None)
            raise
        # In a copy of the context, so that what the thread shows belongs to this cell.
        self._reader = threading.Thread(
            target=contextvars.copy_context().run, args=(self._read,), name="gpumon-cell", daemon=True
        )
        self._reader.start()

    def _record(self, name: str) -> tuple[Any, bool]:
        """The automatic instrumentation, and whether it is this cell's own: another may already be active.
        Processes and monitors that the cell starts inherit its run id."""
        package = sdk()
        running = importlib.import_module(f"{package.__name__}.auto.registry").auto()
        if running is not None:
            return running.monitor, False
        identity = importlib.import_module(f"{package.__name__}.loop._identity")
        stem = identity.clean(name)[:32]
        os.environ[RUN_ID] = f"{stem}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        return package.TrainingMonitor.auto(name), True

    def _start(self, run_id: str) -> subprocess.Popen[str]:
        """In its own session: an interrupt is meant for the cell."""
        return subprocess.Popen(
            [sys.executable, "-P", str(HOME / "gpumon" / "ours.py"), "monitor.cli.cell", run_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def _read(self) -> None:
        assert self._child.stdout is not None
        for text in self._child.stdout:
            self._last = json.loads(text)
            if "line" in self._last and self._line is not None:
                self._line.update({"text/plain": self._last["line"]}, raw=True)

    def end(self, cause: BaseException | None) -> None:
        """The cell is over, ended by `cause` if it failed: show its report."""
        try:
            self._stop(cause)
            self._finish()
        finally:
            self._child.kill()
            self._child.wait()
        with self._errors:
            self._tell()

    def _stop(self, cause: BaseException | None) -> None:
        try:
            if self._ours:
                self._monitor.session.stop(cause=cause)
        finally:
            os.environ.pop(RUN_ID, None)
            if self._before is not None:
                os.environ[RUN_ID] = self._before

    def _finish(self) -> None:
        """Send an explicit message: surviving loader workers also hold the pipe open."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write("end\n")
            self._child.stdin.close()
        except OSError:
            pass  # it has died; its error message is shown
        self._reader.join(REPORT_SECONDS)

    def _tell(self) -> None:
        if "text" in self._last:
            bundle = {"text/plain": self._last["text"]}
            _show(bundle | ({"text/html": self._last["html"]} if "html" in self._last else {}))
            return
        self._errors.seek(0)
        why = self._errors.read().decode(errors="replace").strip().splitlines()[-1:] or ["it took too long"]
        print(f"gpumon: no report: {why[0]}", file=sys.stderr)


def _show(bundle: dict[str, str]) -> Any:
    """Display the bundle; returns a handle to update it."""
    from IPython.display import display

    return display(bundle, raw=True, display_id=True)

"""Sending a signal to the process that was meant, and to no other.

Between the picture and the key press a pid may have been given to another process: the start time
is compared first. Only processes of this machine can be reached.
"""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import dataclass

import psutil

from monitor.tui.views.processes import Entry

CHOICES = {
    "SIGINT": "interrupt, like Ctrl-C: most trainers save and stop",
    "SIGTERM": "ask it to end",
    "SIGKILL": "end it now: nothing is saved",
}
TOLERANCE = 2.0


@dataclass(frozen=True, slots=True)
class Target:
    pid: int
    started: float | None
    hostname: str
    text: str

    @classmethod
    def of(cls, entry: Entry) -> Target:
        process = entry.process
        host = entry.host.snapshot.host.hostname if entry.host.snapshot else entry.host.label
        return cls(process.pid, process.started, host, process.command or process.name or "")

    @property
    def here(self) -> bool:
        return self.hostname == socket.gethostname()


def send(target: Target, name: str) -> str | None:
    """Deliver it; None when done, else the sentence why not."""
    if not target.here:
        return f"process {target.pid} runs on {target.hostname}: signals reach this machine only"
    try:
        process = psutil.Process(target.pid)
        if target.started is None or abs(process.create_time() - target.started) > TOLERANCE:
            return f"pid {target.pid} is another process by now; nothing was sent"
        os.kill(target.pid, getattr(signal, name))
    except (psutil.NoSuchProcess, ProcessLookupError):
        return f"process {target.pid} has already ended"
    except (psutil.AccessDenied, PermissionError):
        return f"process {target.pid} belongs to another user: you may not signal it"
    return None

"""Signals a process or reads its environment, and makes sure that it is the intended one.

Between drawing the screen and pressing the key, a pid may have been reused, so the start time is compared
first. Only processes on this machine can be reached.
"""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import dataclass

import psutil

from monitor.model.errors import UserError
from monitor.tui.views.processes import Entry
from sdk.redact import redact

CHOICES = {
    "SIGINT": "interrupt, like Ctrl-C: most trainers save and stop",
    "SIGTERM": "ask it to end",
    "SIGKILL": "end it now: nothing is saved",
}
TOLERANCE_SECONDS = 2.0
"""Start times from /proc and from the boot time differ by rounding and clock changes."""


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
    """Send the signal; None on success, otherwise a sentence saying why not."""
    try:
        _process(target, "signals reach")
        os.kill(target.pid, getattr(signal, name))
    except UserError as error:
        return error.sentence
    except ProcessLookupError:
        return f"process {target.pid} has already ended"
    except PermissionError:
        return f"process {target.pid} belongs to another user: you may not signal it"
    return None


def environment(target: Target) -> dict[str, str]:
    """The process's initial environment variables, without secrets."""
    process = _process(target, "environments can be read on")
    try:
        found = process.environ()
    except psutil.NoSuchProcess as error:
        raise UserError(f"process {target.pid} has already ended") from error
    except (psutil.AccessDenied, OSError) as error:
        raise UserError(
            f"process {target.pid} belongs to another user: its environment is private"
        ) from error
    words = redact([f"{name}={value}" for name, value in found.items()])
    return {name: word.removeprefix(f"{name}=") for name, word in zip(found, words, strict=True)}


def _process(target: Target, what: str) -> psutil.Process:
    """The process, unless its pid now belongs to another one."""
    if not target.here:
        raise UserError(f"process {target.pid} runs on {target.hostname}: {what} this machine only")
    try:
        process = psutil.Process(target.pid)
        same = target.started is not None and abs(process.create_time() - target.started) <= TOLERANCE_SECONDS
    except psutil.NoSuchProcess as error:
        raise UserError(f"process {target.pid} has already ended") from error
    if not same:
        raise UserError(f"pid {target.pid} is another process by now; nothing was done")
    return process

"""Which process listens on a TCP port, whether it is a gpumon daemon, and who can reach it."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it; names other than localhost are not resolved."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Owner(NamedTuple):
    """A process that holds something a daemon needs."""

    pid: int
    name: str
    is_daemon: bool
    """Judged by its command: a daemon with TLS or a password does not answer a plain request."""


def port_owner(port: int) -> Owner | None:
    """Who listens on a port, as far as we are allowed to know."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            local = connection.laddr[1] if connection.laddr else None
            if connection.status == psutil.CONN_LISTEN and local == port and connection.pid:
                return owner(connection.pid)
    return None


def owner(pid: int) -> Owner | None:
    """None: no such process, or it is hidden from us."""
    try:
        command = psutil.Process(pid).cmdline()
    except psutil.Error:
        return None
    return Owner(pid, Path(command[0]).name, is_daemon_command(command)) if command else None


def is_daemon_command(command: Sequence[str]) -> bool:
    ours = any(Path(part).name == "gpumon" or part == "monitor.cli.main" for part in command)
    return ours and "daemon" in command

"""The daemon's port and socket. A second daemon is told who holds them; a socket left by a dead daemon is
replaced."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import struct
from pathlib import Path

from monitor.daemon.conflict import in_use
from monitor.daemon.lock import make_private
from monitor.host.listeners import owner, port_owner
from monitor.model.errors import UserError
from monitor.model.owner import own_uid, user_name
from monitor.model.paths import runtime_directory

BACKLOG = 128
"""Connections waiting to be accepted; what most servers use."""


def bind_tcp(listen: str) -> socket.socket:
    """A bound socket for ``host:port``; not listening yet, the server does that."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets NODELAY by proto
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, int(port)))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise in_use(listen, port_owner(int(port))) from None
        raise UserError(f"cannot listen on {listen}: {error.strerror or error}") from None
    found.setblocking(False)
    return found


def bind_unix(path: Path, mode: int = 0o600) -> socket.socket:
    """A socket bound at `path` with permissions `mode`; a dead daemon's socket is replaced."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _make_folder(path.parent)
        _clear_stale(path)
        before = os.umask(0o177)
        try:
            found.bind(str(path))
        finally:
            os.umask(before)
        path.chmod(mode)
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot serve on the socket {path}: {reason}", hint="choose another with --socket"
        ) from None
    found.setblocking(False)
    return found


def _make_folder(folder: Path) -> None:
    """Our own runtime directory must be private; elsewhere the user decides."""
    if folder == runtime_directory():
        make_private(folder)
    else:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _clear_stale(path: Path) -> None:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(there.st_mode):
        raise UserError(f"{path} exists and is not a socket", hint="choose another with --socket")
    if there.st_uid not in (0, own_uid()):
        raise UserError(f"{path} belongs to {user_name(there.st_uid)}", hint="choose another with --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        pid = _peer_pid(probe)
        raise in_use(f"the socket {path}", owner(pid) if pid else None)


def _peer_pid(probe: socket.socket) -> int | None:
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", raw)[0]) or None


def release_unix(path: Path, inode: int) -> None:
    """Remove the socket file, unless another daemon has put its own there in the meantime."""
    with contextlib.suppress(OSError):
        if path.lstat().st_ino == inode:
            path.unlink()

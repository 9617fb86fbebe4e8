"""What a daemon must have for itself: its directories, its port, its socket. Who comes second is told
who has it; what a dead daemon left behind is cleaned up."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import stat
import struct
from pathlib import Path

import psutil

from monitor.errors import EXIT_CONFLICT, UserError

LOCK_NAME = "daemon.lock"
BACKLOG = 128


class DirectoryLock:
    """Held as long as the process lives; the kernel frees it when the process dies."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOCK_NAME
        self._fd = self._open(directory)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner_text(self._read_pid())
            os.close(self._fd)
            raise _taken(f"the directory {directory}", owner) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps({"pid": os.getpid()}).encode(), 0)

    def _open(self, directory: Path) -> int:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(
                f"cannot use the ring directory {directory}: {error.strerror}",
                hint="choose another with --dir, or run: gpumon doctor",
            ) from None

    def _read_pid(self) -> int | None:
        try:
            return int(json.loads(os.pread(self._fd, 256, 0))["pid"])
        except (ValueError, KeyError, TypeError, OSError):
            return None

    def release(self) -> None:
        """The empty file stays: removing it would let two daemons lock two different files."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1


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
            raise _taken(listen, _owner_text(_listener_pid(int(port)))) from None
        raise UserError(f"cannot listen on {listen}: {error.strerror or error}") from None
    found.setblocking(False)
    return found


def _listener_pid(port: int) -> int | None:
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr[1] == port:
                return connection.pid
    return None


def bind_unix(path: Path) -> socket.socket:
    """A bound socket at `path`, for its user and group; a dead daemon's socket is replaced."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clear_stale(path)
        before = os.umask(0o117)
        try:
            found.bind(str(path))
        finally:
            os.umask(before)
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot serve on the socket {path}: {reason}", hint="choose another with --socket"
        ) from None
    found.setblocking(False)
    return found


def _clear_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise UserError(f"{path} exists and is not a socket", hint="choose another with --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        raise _taken(f"the socket {path}", _owner_text(_peer_pid(probe)))


def _peer_pid(probe: socket.socket) -> int | None:
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", raw)[0]) or None


def release_unix(path: Path, inode: int) -> None:
    """Remove the socket file, unless another daemon has put its own there meanwhile."""
    with contextlib.suppress(OSError):
        if path.lstat().st_ino == inode:
            path.unlink()


def _owner_text(pid: int | None) -> str:
    if pid is None:
        return "another process"
    try:
        command = psutil.Process(pid).cmdline()
    except psutil.Error:
        command = []
    ours = any("gpumon" in part or "monitor" in part for part in command[:3])
    other = f"the program {Path(command[0]).name}" if command else "another process"
    return f"{'another gpumon daemon' if ours else other} (pid {pid})"


def _taken(what: str, owner: str) -> UserError:
    return UserError(
        f"{owner} has {what}",
        hint="stop it, or give this one its own --listen, --socket and --dir",
        code=EXIT_CONFLICT,
    )

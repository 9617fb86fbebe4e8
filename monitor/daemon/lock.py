"""One daemon per user and ring directory. The lock is in the runtime directory, where nobody else can replace
or hold it."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from pathlib import Path

from monitor.daemon.conflict import in_use
from monitor.host.listeners import owner
from monitor.model.errors import UserError
from monitor.model.owner import own_uid, user_name
from monitor.model.paths import endpoint_name, runtime_directory

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ELSEWHERE = "set XDG_RUNTIME_DIR to a directory that only you can write to"


class DirectoryLock:
    """Held as long as the process lives; the kernel releases it when the process dies."""

    def __init__(self, directory: Path) -> None:
        _make_ring_directory(directory)
        self.path = runtime_directory() / f"{endpoint_name(directory)}.lock"
        self._fd = _open_own(self.path)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = self._read_pid()
            os.close(self._fd)
            raise in_use(f"the directory {directory}", owner(pid) if pid else None) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps({"pid": os.getpid()}).encode(), 0)

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


def _make_ring_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot use the ring directory {directory}: {error.strerror}",
            hint="choose another with --dir, or run: gpumon doctor",
        ) from None


def _open_own(path: Path) -> int:
    """The lock file, created if needed. Raises `UserError` if it or its directory could be someone else's."""
    try:
        make_private(path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        raise UserError(f"cannot lock {path}: {error.strerror}", hint=ELSEWHERE) from None
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_uid == own_uid() and found.st_nlink == 1:
        os.fchmod(fd, 0o600)
        return fd
    os.close(fd)
    raise UserError(
        f"{path} is not a file that belongs to this user alone", hint=f"remove it, or {ELSEWHERE}"
    )


def make_private(directory: Path) -> None:
    """Create the directory if needed. Raises `UserError` if others could replace its contents."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{directory} is not a directory", hint=ELSEWHERE)
    if found.st_uid != own_uid():
        raise UserError(f"{directory} belongs to {user_name(found.st_uid)}", hint=ELSEWHERE)
    if found.st_mode & OTHERS_WRITE:
        raise UserError(f"others may write to {directory}", hint=f"chmod 0700 {directory}, or {ELSEWHERE}")

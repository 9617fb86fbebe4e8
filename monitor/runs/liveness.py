"""Whether a ring's writer is still alive, and its pid on the host.

On POSIX the writer holds a lock on its file and the kernel answers for it: released within a millisecond of a
kill -9, never inherited by forked workers, and with the pid as *this* process sees it, even if the writer is
in another pid namespace. Elsewhere pid and creation time must do.
"""

from __future__ import annotations

import os
import struct
import sys

from monitor.model.owner import own_uid
from sdk.ring import Header

if sys.platform != "win32":
    import fcntl

_BSD = sys.platform == "darwin" or "bsd" in sys.platform
_FLOCK = "qqihh" if _BSD else "hhqqi4x"
UNSEEN = 0
"""The pid of a writer in a pid namespace this process cannot see into."""


def writer_pid(fd: int, header: Header, owner: int) -> int | None:
    """Host pid of the live writer, `UNSEEN` if its pid means nothing to us, or None if it is gone."""
    if header.pid == os.getpid() and owner == own_uid():
        return header.pid  # the kernel does not report a process's own locks to itself
    if sys.platform == "win32":
        return header.pid if _same_process(header) else None
    return _lock_holder(fd, header, owner)


def _lock_holder(fd: int, header: Header, owner: int) -> int | None:
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, _question())
    except OSError:  # a file system without locks
        return header.pid if _belongs_to(header.pid, owner) else None
    kind, pid = _parse(answer)
    if kind == fcntl.F_UNLCK:
        return None
    if pid > 0:
        return pid
    return header.pid if _belongs_to(header.pid, owner) else UNSEEN


def _belongs_to(pid: int, owner: int) -> bool:
    """A pid in a ring is a claim, believed only if the process belongs to the ring's owner."""
    import psutil  # rarely needed, and slow to import

    try:
        return psutil.Process(pid).uids().effective == owner
    except psutil.Error:
        return False


def _question() -> bytes:
    """`struct flock`: would a write lock on the whole file be granted?"""
    if _BSD:
        return struct.pack(_FLOCK, 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def _parse(answer: bytes) -> tuple[int, int]:
    fields = struct.unpack(_FLOCK, answer)
    return (fields[3], fields[2]) if _BSD else (fields[0], fields[4])


def _same_process(header: Header) -> bool:
    """The pid exists and, if the writer recorded its creation time, was created then."""
    import psutil

    try:
        created = psutil.Process(header.pid).create_time()
    except psutil.Error:
        return False
    return not header.pid_started or abs(created - header.pid_started / 1e9) < 2.0

"""Does a ring's writer still live, and which host pid is it?

On POSIX the writer holds a lock on its file and the kernel answers for it: freed within a
millisecond of a kill -9, never inherited by forked workers, and with the pid as *this* process sees
it, even when the writer is in another pid namespace. Elsewhere pid and creation time must do.
"""

from __future__ import annotations

import os
import struct
import sys

import psutil

from sdk.ring import Header

if sys.platform != "win32":
    import fcntl

_BSD = sys.platform == "darwin" or "bsd" in sys.platform
_FLOCK = "qqihh" if _BSD else "hhqqi4x"


def writer_pid(fd: int, header: Header) -> int | None:
    """Host pid of the live writer, or None when it is gone."""
    if header.pid == os.getpid():
        return header.pid  # the kernel does not report a process's own locks to itself
    if sys.platform == "win32":
        return header.pid if _same_process(header) else None
    return _lock_holder(fd, header)


def _lock_holder(fd: int, header: Header) -> int | None:
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, _question())
    except OSError:
        return header.pid if psutil.pid_exists(header.pid) else None
    kind, pid = _parse(answer)
    if kind == fcntl.F_UNLCK:
        return None
    return pid if pid > 0 else header.pid


def _question() -> bytes:
    """`struct flock`: would a write lock on the whole file be granted?"""
    if _BSD:
        return struct.pack(_FLOCK, 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def _parse(answer: bytes) -> tuple[int, int]:
    fields = struct.unpack(_FLOCK, answer)
    return (fields[3], fields[2]) if _BSD else (fields[0], fields[4])


def _same_process(header: Header) -> bool:
    """The pid exists and, when the writer noted its creation time, was created then."""
    try:
        created = psutil.Process(header.pid).create_time()
    except psutil.Error:
        return False
    return not header.pid_started or abs(created - header.pid_started / 1e9) < 2.0

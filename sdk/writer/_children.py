"""Children of `multiprocessing` that their own parent ends: `with Pool()` terminates its workers at its end.
The parent notes so in their rings, which would otherwise look like those of killed processes."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import struct
from types import ModuleType
from typing import Any

from .. import ring

_WORD = 8


def watch_children(popen_fork: ModuleType) -> None:
    """Of a module's `Popen`, from which those of all ways to start a child inherit. It stays: daemonic
    children are terminated after everything of ours was taken back."""
    terminate = popen_fork.Popen.terminate

    @functools.wraps(terminate)
    def noted(child: Any) -> Any:
        if child.returncode is None:
            with contextlib.suppress(OSError):
                note_terminated(ring.default_directory(), child.pid)
        return terminate(child)

    popen_fork.Popen.terminate = noted


def note_terminated(folder: str, pid: int) -> None:
    """Note in the open rings of process `pid` that it is asked to end."""
    with os.scandir(folder) as entries:
        rings = {entry.inode(): entry.path for entry in entries if entry.name.endswith(ring.SUFFIX)}
    ours = _open_inodes()
    for inode, path in rings.items():
        if inode not in ours:
            with contextlib.suppress(OSError):
                _note(path, pid)


def _open_inodes() -> set[int]:
    """Of all files this process has open. Its own rings, which the package's other copy may write, are not
    opened again: closing any descriptor of a file releases the process's lock on it."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.stat(int(fd)).st_ino)
    return found


def _note(path: str, pid: int) -> None:
    fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        with contextlib.suppress(ring.RingError):
            header = ring.read_header(fd, os.fstat(fd).st_size)
            if header.pid == pid and header.state == ring.S_RUNNING:
                os.pwrite(fd, struct.pack("<Q", signal.SIGTERM), _WORD * ring.H_SIGNAL)
    finally:
        os.close(fd)

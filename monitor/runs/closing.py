"""Records in a run's rings that somebody ended it, when the process could not: a termination request ends
Python at once, which leaves its rings looking like those of a killed process."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from pathlib import Path

from monitor.runs.liveness import writer_pid
from sdk import ring

WORD = 8


def mark_interrupted(directory: Path, run: str) -> None:
    """Mark this run's rings that a dead process left open. Harmless if there are none."""
    for path in directory.glob(f"{run}.*.ring"):
        with contextlib.suppress(OSError, ring.RingError):
            _mark(path)


def _mark(path: Path) -> None:
    fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        header = ring.read_header(fd, os.fstat(fd).st_size)
        if header.state == ring.S_RUNNING and writer_pid(fd, header, os.fstat(fd).st_uid) is None:
            _store(fd, ring.H_ENDED_MONO, time.monotonic_ns())
            _store(fd, ring.H_STATE, ring.S_INTERRUPTED)
    finally:
        os.close(fd)


def _store(fd: int, word: int, value: int) -> None:
    os.pwrite(fd, struct.pack("<Q", value), WORD * word)

"""Records in a run's rings what ended it, when the process could not: a signal ends Python at once, which
leaves its rings looking like those of a killed process."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from monitor.runs.liveness import writer_pid
from sdk import ring

WORD = 8


def mark_interrupted(directory: Path, run: str) -> None:
    """Mark this run's rings that a dead process left open. Harmless if there are none."""
    for fd, _ in _left_open(directory, run):
        _store(fd, ring.H_ENDED_MONO, time.monotonic_ns())
        _store(fd, ring.H_STATE, ring.S_INTERRUPTED)


def mark_killed(directory: Path, run: str, pid: int, number: int) -> None:
    """Note in the rings that process `pid` left open which signal ended it."""
    for fd, header in _left_open(directory, run):
        if header.pid == pid:
            _store(fd, ring.H_SIGNAL, number)


def _left_open(directory: Path, run: str) -> Iterator[tuple[int, ring.Header]]:
    """The open files of this run's rings whose writer died without ending them, one after the other. A run
    that is not the first of its process has a number appended."""
    for path in (*directory.glob(f"{run}.*.ring"), *directory.glob(f"{run}-*.*.ring")):
        with contextlib.suppress(OSError, ring.RingError):
            fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                header = ring.read_header(fd, os.fstat(fd).st_size)
                if header.state == ring.S_RUNNING and writer_pid(fd, header, os.fstat(fd).st_uid) is None:
                    yield fd, header
            finally:
                os.close(fd)


def _store(fd: int, word: int, value: int) -> None:
    os.pwrite(fd, struct.pack("<Q", value), WORD * word)

"""Cheap reading of kernel text files: descriptors kept open, counters as rates, slow files read rarely.

A held descriptor saves the path lookup on every tick, and one on ``/proc/PID/…`` stays with *that* process:
after its death reads fail with ESRCH, even if the pid has been reused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable
from pathlib import Path

from msgspec import Struct

_CHUNK = 1 << 16


class Roots(Struct, frozen=True):
    """Where the kernel's file systems are; tests put prepared directories here."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")

    def available(self) -> bool:
        return (self.proc / "stat").is_file()


def read_bytes(path: Path | str) -> bytes | None:
    """The whole file, or None if it is absent or unreadable, or the process has gone."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _read_all(fd)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_text(path: Path | str) -> str | None:
    raw = read_bytes(path)
    return None if raw is None else raw.decode("utf-8", "replace")


def read_int(path: Path | str) -> int | None:
    return to_int(read_bytes(path))


def to_int(raw: bytes | str | None) -> int | None:
    """A number, or None if absent, "max" or otherwise not a number."""
    try:
        return None if raw is None else int(raw)
    except ValueError:
        return None


def counter(raw: bytes | None, name: bytes) -> int | None:
    """One of the ``name value`` lines of vmstat, cpu.stat or memory.stat: they have up to two hundred, and we
    need one or two."""
    text = b"\n%s\n" % (raw or b"")
    at = text.find(b"\n%s " % name)
    return None if at < 0 else to_int(text[at + len(name) + 2 : text.find(b"\n", at + 1)])


def _read_all(fd: int, *, in_one_piece: bool = False) -> bytes:
    """Record-based kernel files return at most a page per read, so read until nothing is left. Those that are
    one record return all of it at once, unless it is longer than we asked for."""
    if sys.platform == "win32":
        return os.read(fd, _CHUNK)
    parts, at = [], 0
    while chunk := os.pread(fd, _CHUNK, at):
        parts.append(chunk)
        at += len(chunk)
        if in_one_piece and len(chunk) < _CHUNK:
            break
    return b"".join(parts)


class HeldFile:
    """A kernel file kept open between ticks. An absent file is retried, but not every tick."""

    RETRY_SECONDS = 30.0

    def __init__(self, path: Path, *, in_one_piece: bool = False) -> None:
        """`in_one_piece`: the kernel makes the whole file at once, as it does stat, meminfo and pressure."""
        self.path = path
        self._in_one_piece = in_one_piece
        self._fd = -1
        self._retry = 0.0

    def read(self, now: float) -> bytes | None:
        """The content, or None. `now` is monotonic time, for the retry only."""
        if self._fd < 0 and not self._open(now):
            return None
        try:
            return _read_all(self._fd, in_one_piece=self._in_one_piece)
        except OSError:
            self.close()
            self._retry = now + self.RETRY_SECONDS
            return None

    def _open(self, now: float) -> bool:
        if now < self._retry:
            return False
        try:
            self._fd = os.open(self.path, os.O_RDONLY)
        except OSError:
            self._retry = now + self.RETRY_SECONDS
            return False
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Rates:
    """Turns counters into rates. A counter's first reading, and one that went backwards, give None."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, float]] = {}

    def per_second(self, key: Hashable, value: float | None, now: float) -> float | None:
        if value is None:
            self._last.pop(key, None)
            return None
        before = self._last.get(key)
        self._last[key] = (value, now)
        if before is None or now <= before[1] or value < before[0]:
            return None
        return (value - before[0]) / (now - before[1])

    def keep(self, keys: set[Hashable]) -> None:
        """Forget counters whose subject has gone, so that its return counts as a first reading."""
        for key in self._last.keys() - keys:
            del self._last[key]


class Every:
    """Due at most once per period: what changes slowly is read rarely."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._due = float("-inf")

    def due(self, now: float) -> bool:
        if now < self._due:
            return False
        self._due = now + self.seconds
        return True

    def reset(self) -> None:
        self._due = float("-inf")

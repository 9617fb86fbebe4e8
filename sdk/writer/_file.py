"""The writing side of the ring: create, commit, grow, close. One writer per ring, in one process."""

from __future__ import annotations

import atexit
import contextlib
import json
import mmap
import os
import stat
import time
from typing import Any

from .. import ring
from ._slots import Slots

try:
    import fcntl
except ImportError:  # Windows: pid and creation time replace the lock
    fcntl = None  # type: ignore[assignment]

_EPOCH_1601 = 116_444_736_000_000_000
"""Windows counts units of 100 ns since 1601; this is 1970."""
_own: dict[str, RingWriter] = {}
"""Rings this process is writing, by path."""


class RingWriter(Slots):
    """Owns one ring file."""

    def __init__(
        self,
        path: str,
        meta: dict[str, Any],
        *,
        slots: int = ring.INITIAL_SLOTS,
        started: tuple[int, int] | None = None,
    ) -> None:
        """`started`: (monotonic, wall) ns at which the run began, if before now."""
        super().__init__(memoryview(b""), slots)
        self.path = path
        self._process = os.getpid()
        self._started = started or (time.monotonic_ns(), time.time_ns())
        self.max_bytes = int(os.environ.get("GPUMON_RING_BYTES", ring.MAX_BYTES))
        self._mappings: list[mmap.mmap] = []
        self._fd = _create(path, ring.DATA_AT + slots * ring.SLOT_BYTES)
        try:
            self._map()
            self._fill_header()
            self.write_meta(meta)
            _lock(self._fd)
            _own[path] = self
            os.rename(f"{path}.tmp", path)
        except BaseException:
            _own.pop(path, None)
            _remove(path)
            os.close(self._fd)
            raise

    def _map(self, size: int = 0) -> None:
        """Map the file in addition to existing mappings. All show the same memory, so a Ctrl-C between these
        lines leaves working views. None is closed before the end: that would close its duplicate of our file
        descriptor, and the kernel would then drop the liveness lock."""
        mapped = mmap.mmap(self._fd, size)
        self._mappings.append(mapped)
        at = ring.SCALARS_AT
        self.scalars = memoryview(mapped)[at : at + ring.SCALARS * 8].cast("d")
        self.words = memoryview(mapped).cast("Q")

    def _fill_header(self) -> None:
        words = self.words
        words[ring.H_VERSION] = ring.VERSION
        words[ring.H_SLOTS] = self.slots
        words[ring.H_PID] = os.getpid()
        words[ring.H_PID_STARTED] = _process_started()
        words[ring.H_STARTED_MONO], words[ring.H_STARTED_WALL] = self._started
        words[ring.H_LIVE] = ring.pack_live(ring.LIVE_NONE, time.monotonic_ns())
        for index in range(ring.SCALARS):
            self.scalars[index] = float("nan")
        words[ring.H_MAGIC] = ring.MAGIC

    def grow(self) -> None:
        """Before its first wrap, double the ring until it holds ten minutes; after that let it wrap."""
        started = self.words[ring.H_STARTED_MONO]
        size = ring.DATA_AT + 2 * self.slots * ring.SLOT_BYTES
        if time.monotonic_ns() - started > 600 * 10**9 or size > self.max_bytes:
            return
        try:
            _allocate(self._fd, size)
        except OSError:
            return  # a full tmpfs: wrap in the space we have
        self._map(size)
        self.words[ring.H_SLOTS] = 2 * self.slots  # from here the ring is longer
        self.slots *= 2

    def write_meta(self, meta: dict[str, Any]) -> None:
        """Replace the meta JSON; readers see the old or the new one, never a mixture."""
        raw = json.dumps(meta, separators=(",", ":"), default=str).encode()
        if len(raw) > ring.META_BYTES:
            meta = {**meta, "config": {"truncated": True}}
            raw = json.dumps(meta, separators=(",", ":"), default=str).encode()[: ring.META_BYTES]
        seq = self.words[ring.H_META_SEQ]
        self.words[ring.H_META_SEQ] = seq + 1
        self._mappings[-1][ring.META_AT : ring.META_AT + len(raw)] = raw
        self.words[ring.H_META_LEN] = len(raw)
        self.words[ring.H_META_SEQ] = seq + 2

    def close(self, state: int = ring.S_ENDED) -> None:
        """Mark the run's end and release file and lock. The file stays for the daemon."""
        if self._fd < 0:
            return
        self.words[ring.H_ENDED_MONO] = time.monotonic_ns()
        self.words[ring.H_STATE] = state
        self._unmap()
        os.close(self._fd)
        self._fd = -1
        _own.pop(self.path, None)

    def belongs_here(self) -> bool:
        """Whether this process created it: a forked child merely shares its memory."""
        return self._process == os.getpid()

    def _unmap(self) -> None:
        self.scalars.release()
        self.words.release()
        for mapped in self._mappings:
            with contextlib.suppress(BufferError):  # somebody still holds a view: freed with it
                mapped.close()


def _create(path: str, size: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(f"{path}.tmp", flags, 0o640)
    try:
        _share(fd, os.path.dirname(path))
        _allocate(fd, size)
    except BaseException:
        os.close(fd)
        os.unlink(f"{path}.tmp")
        raise
    return fd


def _remove(path: str) -> None:
    """Remove an unfinished ring: under its temporary name or, if Ctrl-C came late, its final one."""
    with contextlib.suppress(OSError):
        try:
            os.unlink(f"{path}.tmp")
        except FileNotFoundError:
            os.unlink(path)


@atexit.register
def _close_all() -> None:
    """Close what is still open when the process ends: Ctrl-C can come when nobody holds the ring yet, or any
    more. A forked child must not close its parent's rings."""
    for writer in list(_own.values()):
        if writer.belongs_here():
            with contextlib.suppress(OSError):  # the program may have closed our file along with its own
                writer.close()


def _share(fd: int, folder: str) -> None:
    """In a service's folder (set-group-ID), its group must be able to read the ring despite any umask."""
    if os.stat(folder or ".").st_mode & stat.S_ISGID:
        os.fchmod(fd, 0o640)


def _allocate(fd: int, size: int) -> None:
    """Allocate real blocks: on a full tmpfs, touching a sparse page later raises SIGBUS."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:
        os.ftruncate(fd, size)


def _process_started() -> int:
    """When this process was created, in ns since the epoch: identifies a reused pid where there is no lock.
    0 where there is one."""
    return _windows_started() if os.name == "nt" else 0


def _windows_started() -> int:
    import ctypes

    times = (ctypes.c_uint64 * 4)()
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    at = [ctypes.byref(times, 8 * index) for index in range(4)]
    known = kernel.GetProcessTimes(kernel.GetCurrentProcess(), *at)
    return (int(times[0]) - _EPOCH_1601) * 100 if known else 0


def is_locked(path: str) -> bool:
    """Whether this ring has a writer. Our own rings are never opened again: closing any descriptor of a file
    releases this process's lock on it."""
    if fcntl is None or path in _own:
        return True
    fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _lock(fd: int) -> None:
    """Held while the process lives; the daemon asks the kernel about it (`F_GETLK`)."""
    if fcntl is not None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

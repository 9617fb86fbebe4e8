"""The writing side of the ring: create, commit, grow, close. One writer per ring, one process."""

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
"""Windows counts 100 ns since 1601; this is 1970."""
_own: dict[str, RingWriter] = {}
"""Rings this process writes now, by path."""


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
        """`started`: (monotonic, wall) ns of the run's begin, when that was before now."""
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
        """Map the file, beside what is mapped already. Every mapping shows the same memory, so a Ctrl-C
        between these lines leaves views that work. None is closed before the end: closing one closes its
        duplicate of our file descriptor, and with that the kernel would drop the liveness lock."""
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
        """Double the ring before its first wrap while ten minutes do not fit; else let it wrap."""
        started = self.words[ring.H_STARTED_MONO]
        size = ring.DATA_AT + 2 * self.slots * ring.SLOT_BYTES
        if time.monotonic_ns() - started > 600 * 10**9 or size > self.max_bytes:
            return
        try:
            _allocate(self._fd, size)
        except OSError:
            return  # a full tmpfs: wrap in what there is
        self._map(size)
        self.words[ring.H_SLOTS] = 2 * self.slots  # from here on the ring is longer
        self.slots *= 2

    def write_meta(self, meta: dict[str, Any]) -> None:
        """Replace the meta JSON; readers see the old one or the new one, never a mixture."""
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
        """Whether this process has made it: a forked child only has its memory."""
        return self._process == os.getpid()

    def _unmap(self) -> None:
        self.scalars.release()
        self.words.release()
        for mapped in self._mappings:
            with contextlib.suppress(BufferError):  # somebody still holds a view: it goes with them
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
    """A ring that was not finished: under its first name, or, if Ctrl-C came that late, under its last."""
    with contextlib.suppress(OSError):
        try:
            os.unlink(f"{path}.tmp")
        except FileNotFoundError:
            os.unlink(path)


@atexit.register
def _close_all() -> None:
    """Whatever is still open when the process ends: Ctrl-C can come where nobody has the ring yet, or no
    longer. Not for a forked child, which has the rings of its parent."""
    for writer in list(_own.values()):
        if writer.belongs_here():
            with contextlib.suppress(OSError):  # the program may have closed our file with all of its own
                writer.close()


def _share(fd: int, folder: str) -> None:
    """In a service's folder (set-group-ID) its group must read the ring, whatever the user's umask."""
    if os.stat(folder or ".").st_mode & stat.S_ISGID:
        os.fchmod(fd, 0o640)


def _allocate(fd: int, size: int) -> None:
    """Real blocks, not a sparse file: on a full tmpfs a sparse page is a SIGBUS later."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:
        os.ftruncate(fd, size)


def _process_started() -> int:
    """When this process was created, in ns since the epoch: tells a reused pid apart where there is no lock.
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
    """Whether this ring has a writer. A ring of our own is never opened a second time: closing any
    descriptor of a file gives up this process's lock on it."""
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
    """Held as long as the process lives; the daemon asks the kernel about it (`F_GETLK`)."""
    if fcntl is not None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

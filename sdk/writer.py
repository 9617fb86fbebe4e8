"""The writing side of the ring: create, commit, grow, close. One writer per ring, one process."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import stat
import threading
import time
from array import array
from typing import Any

from . import ring

try:
    import fcntl
except ImportError:  # Windows: pid and creation time stand in for the lock
    fcntl = None  # type: ignore[assignment]

# x86 keeps stores in order; elsewhere a released and re-acquired lock is the barrier.
_MACHINE = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
_WEAK_ORDER = _MACHINE.lower() not in ("x86_64", "amd64", "i386", "i686")

_WORDS, _COMMIT, _HEAD = ring.SLOT_WORDS, ring.W_COMMIT, ring.H_HEAD
_DATA = ring.DATA_AT // 8
_WORD = (1 << 64) - 1
_EPOCH_1601 = 116_444_736_000_000_000
"""Windows counts 100 ns since 1601; this is 1970."""
FOLD = 64
"""So many records are added up at once."""
_own: set[str] = set()
"""Rings this process writes now."""


class Slots:
    """Records in slots, one after the other, round and round: record n is in slot (n - 1) % slots."""

    def __init__(self, words: memoryview, slots: int) -> None:
        self.words = words
        self.slots = slots
        self._barrier = threading.Lock()
        self._barrier.acquire()

    @property
    def head(self) -> int:
        """Committed records so far."""
        return int(self.words[_HEAD])

    def commit(self, record: memoryview | array[int]) -> None:
        """Append one record (`SLOT_WORDS` words; the two sequence words are set here)."""
        number = self.words[_HEAD] + 1 & _WORD  # whoever else can write there must not break us
        if number == self.slots + 1:
            self.grow()
        words = self.words
        at = _DATA + (number - 1) % self.slots * _WORDS
        after = at + _WORDS
        words[at] = record[0] = record[_COMMIT] = 0
        if _WEAK_ORDER:
            self._fence()
        words[at:after] = record
        words[after - 1] = number
        if _WEAK_ORDER:
            self._fence()
        words[at] = words[_HEAD] = number

    def _fence(self) -> None:
        self._barrier.release()
        self._barrier.acquire()

    def grow(self) -> None:
        """All slots are used for the first time. A ring in memory stays as it is."""

    def newest(self, count: int) -> memoryview:
        """The words of the last `count` records (at most `FOLD`). They lie in one piece: the recorder's
        rings have a multiple of `FOLD` slots, and it asks at every multiple."""
        last = (self.head - 1) % self.slots + 1
        return self.words[_DATA + max(0, last - count) * _WORDS : _DATA + last * _WORDS]


def memory_slots() -> Slots:
    """For a run without a file: as many records as are added up at once."""
    return Slots(memoryview(array("Q", bytes((_DATA + FOLD * _WORDS) * 8))), FOLD)


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
        self._started = started or (time.monotonic_ns(), time.time_ns())
        self.max_bytes = int(os.environ.get("GPUMON_RING_BYTES", ring.MAX_BYTES))
        self._fd = _create(path, ring.DATA_AT + slots * ring.SLOT_BYTES)
        try:
            self._map()
            self._fill_header()
            self.write_meta(meta)
            _lock(self._fd)
            os.rename(f"{path}.tmp", path)
            _own.add(path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(f"{path}.tmp")
            os.close(self._fd)
            raise

    def _map(self) -> None:
        self._mmap = mmap.mmap(self._fd, 0)
        self._view()

    def _view(self) -> None:
        self.words = memoryview(self._mmap).cast("Q")
        at = ring.SCALARS_AT
        self.scalars = memoryview(self._mmap)[at : at + ring.SCALARS * 8].cast("d")

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
        self._remap(size)
        self.slots *= 2
        self.words[ring.H_SLOTS] = self.slots

    def _remap(self, size: int) -> None:
        """Map the longer file. Closing the old mapping would close its duplicate of our file
        descriptor, and with that the kernel would drop the liveness lock: so it is resized."""
        self.scalars.release()
        self.words.release()
        try:
            self._mmap.resize(size)
            self._view()
        except (SystemError, OSError):  # no mremap on this system: map anew, lock again
            self._mmap.close()
            self._map()
            _lock(self._fd)

    def write_meta(self, meta: dict[str, Any]) -> None:
        """Replace the meta JSON; readers see the old one or the new one, never a mixture."""
        raw = json.dumps(meta, separators=(",", ":"), default=str).encode()
        if len(raw) > ring.META_BYTES:
            meta = {**meta, "config": {"truncated": True}}
            raw = json.dumps(meta, separators=(",", ":"), default=str).encode()[: ring.META_BYTES]
        seq = self.words[ring.H_META_SEQ]
        self.words[ring.H_META_SEQ] = seq + 1
        self._mmap[ring.META_AT : ring.META_AT + len(raw)] = raw
        self.words[ring.H_META_LEN] = len(raw)
        self.words[ring.H_META_SEQ] = seq + 2

    def close(self, state: int = ring.S_ENDED) -> None:
        """Mark the run's end and let go of file and lock. The file stays for the daemon."""
        if self._fd < 0:
            return
        self.words[ring.H_ENDED_MONO] = time.monotonic_ns()
        self.words[ring.H_STATE] = state
        self._unmap()
        os.close(self._fd)
        self._fd = -1
        _own.discard(self.path)

    def _unmap(self) -> None:
        self.scalars.release()
        self.words.release()
        self._mmap.close()


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
    """When this process was created, in ns since the epoch: tells a pid from its next owner where there
    is no lock to tell. 0 where the lock does."""
    return _windows_started() if os.name == "nt" else 0


def _windows_started() -> int:
    import ctypes

    times = (ctypes.c_uint64 * 4)()
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    at = [ctypes.byref(times, 8 * index) for index in range(4)]
    known = kernel.GetProcessTimes(kernel.GetCurrentProcess(), *at)
    return (int(times[0]) - _EPOCH_1601) * 100 if known else 0


def is_locked(path: str) -> bool:
    """Whether somebody writes this ring. A ring of our own is never opened a second time: closing any
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

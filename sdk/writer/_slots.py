"""Records in slots: the part of a ring that a commit writes, in a file or in memory."""

from __future__ import annotations

import os
import threading
from array import array
from typing import Any

from .. import ring

# x86 keeps stores in order; elsewhere, releasing and re-acquiring a lock is the barrier.
_MACHINE = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
_WEAK_ORDER = _MACHINE.lower() not in ("x86_64", "amd64", "i386", "i686")

_WORDS, _COMMIT, _HEAD = ring.SLOT_WORDS, ring.W_COMMIT, ring.H_HEAD
_DATA = ring.DATA_AT // 8
_WORD_MASK = (1 << 64) - 1
FOLD = 256
"""Chosen: records added to the statistics at once; with fewer, each would cost more. `Slots.newest` requires
the slots of every ring to be a multiple of it."""


class Slots:
    """Records in a circular array of slots: record n is in slot (n - 1) % slots."""

    def __init__(self, words: memoryview, slots: int) -> None:
        self.words = words
        self.slots = slots
        self._barrier = threading.Lock()
        self._barrier.acquire()

    @property
    def head(self) -> int:
        """Records committed so far."""
        return int(self.words[_HEAD])

    def commit(self, record: memoryview | array[int]) -> None:
        """Append one record (`SLOT_WORDS` words; the two sequence words are set here). The format fixes the
        order of the stores; `records.c` explains each."""
        number = self.words[_HEAD] + 1 & _WORD_MASK  # another process may write there and must not break us
        try:
            if number == self.slots + 1:
                self.grow()
        finally:  # a Ctrl-C while the ring grows must not cost the record
            self._put(record, number)

    def _put(self, record: memoryview | array[int], number: int) -> None:
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
        """All slots are used for the first time. A ring in memory does not grow."""

    def newest(self, count: int) -> memoryview:
        """The words of the last `count` records (at most `FOLD`). They are contiguous: the number of slots
        is a multiple of `FOLD`, and the recorder asks at every multiple."""
        last = (self.head - 1) % self.slots + 1
        return self.words[_DATA + max(0, last - count) * _WORDS : _DATA + last * _WORDS]

    def record(self, number: int) -> memoryview | None:
        """The words of a committed record that is still there."""
        if not max(0, self.head - self.slots) < number <= self.head:
            return None
        at = _DATA + (number - 1) % self.slots * _WORDS
        return self.words[at : at + _WORDS]


class MemoryRing(Slots):
    """The null counterpart of `RingWriter`: no file, and room for the records summed at once."""

    path: str | None = None

    def __init__(self) -> None:
        super().__init__(memoryview(array("Q", bytes((_DATA + FOLD * _WORDS) * 8))), FOLD)
        self.scalars = memoryview(bytearray(ring.SCALARS * 8)).cast("d")

    def write_meta(self, meta: dict[str, Any]) -> None:
        """Nobody reads it."""

    def close(self, state: int = ring.S_ENDED) -> None:
        """Nothing to release."""

"""Another thread's stack, read all at once.

Walking the frame objects of a running thread is not safe: it continues between two reads, and a frame that
has returned or yielded meanwhile can crash the whole process. `faulthandler` reads a whole stack in C while
holding the interpreter lock, and returns it as text.
"""

from __future__ import annotations

import importlib
import os
import re
from typing import NamedTuple

_LINE = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_MOST_BYTES = 256 * 1024
"""Chosen: faulthandler writes at most 100 frames per thread, so this holds dozens of threads."""


class Frame(NamedTuple):
    """One call on a stack."""

    file: str
    line: int
    name: str


class StackReader:
    """Reads the stack of one thread, repeatedly."""

    def __init__(self, thread: int) -> None:
        self._dump = importlib.import_module("faulthandler").dump_traceback
        self._thread = thread
        self._fd = _memory_file()

    def read(self) -> list[Frame]:
        """Innermost call first; empty if the thread is not found."""
        return parse(self.dump(), self._thread)

    def dump(self) -> bytes:
        """The stacks of all threads as text; `parse` finds the right one later, when there is time."""
        os.ftruncate(self._fd, 0)
        os.lseek(self._fd, 0, os.SEEK_SET)
        self._dump(self._fd, all_threads=True)
        return os.pread(self._fd, _MOST_BYTES, 0)

    def close(self) -> None:
        os.close(self._fd)


def parse(text: bytes, thread: int) -> list[Frame]:
    """The frames of a thread. Its line begins with "Thread", or "Current thread" if it is the caller."""
    at = text.find(f"hread 0x{thread:016x} ".encode())
    if at < 0:
        return []
    end = text.find(b"\n\n", at)
    stack = text[at : end if end > 0 else len(text)].decode("ascii", "replace")
    return [Frame(_plain(file), int(line), _plain(name)) for file, line, name in _LINE.findall(stack)]


def _plain(text: str) -> str:
    """The plain name: non-ASCII characters arrive escaped."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: chr(int(next(filter(None, found.groups())), 16)), text)


def _memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gpumon-stack")
    fd, path = importlib.import_module("tempfile").mkstemp(prefix="gpumon-stack-")
    os.unlink(path)
    return int(fd)

"""The request folder beside a ring: only what nobody but the run's owner can have put there is read.

The command fills the folder, then renames it into place atomically; the run takes a request by removing it.
Only the owner or root can create a folder that belongs to the owner; one that others may enter is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from typing import Any, NamedTuple

from .. import ring

_MOST_BYTES = 4096
_MOST_STEPS = 1000
"""Chosen: far more than anyone reads; the command asks for a few."""
_OTHERS = 0o077
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"):  # a pipe in its place must not block the training
    _FLAGS |= getattr(os, _name, 0)


class Request(NamedTuple):
    """A window of `steps` steps, not before step `first` and not after `until_ns` (monotonic)."""

    steps: int
    first: int
    stacks: bool
    until_ns: int


class Mailbox:
    """One ring's request folder; `path` need not exist."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def open(self) -> bool:
        """Whether there is an authorized request that has not been withdrawn."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and _is_private(found)

    def take(self) -> Request | None:
        """The request, once; None if there is none or it is too late. Raises `ValueError` if malformed."""
        name = os.path.join(self.path, ring.REQUEST)
        try:
            raw = _read(name)
            os.unlink(name)
        except OSError:
            return None
        request = _parse(raw)
        return request if request.until_ns > time.monotonic_ns() else None

    def answer(self, state: str, reason: str = "") -> None:
        """Write the request's state; whoever asked may be gone."""
        with contextlib.suppress(OSError):
            new = os.path.join(self.path, f"{ring.STATE}.tmp")
            with open(new, "w", encoding="utf-8") as file:
                json.dump({"state": state, "reason": reason}, file)
            os.replace(new, os.path.join(self.path, ring.STATE))

    def clear(self) -> None:
        """Leave nothing behind."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self.path):
                os.unlink(os.path.join(self.path, name))
            os.rmdir(self.path)


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS


def _read(name: str) -> bytes:
    fd = os.open(name, _FLAGS)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or not _is_private(found) or found.st_nlink != 1:
            raise ValueError("the request is not a private file owned by this user")
        return os.read(fd, _MOST_BYTES)
    finally:
        os.close(fd)


def _parse(raw: bytes) -> Request:
    """Raises `ValueError`."""
    asked: Any = json.loads(raw)
    if not isinstance(asked, dict):
        raise ValueError("the request is not a JSON object")
    steps, first, until = (_whole(asked.get(key)) for key in ("steps", "first", "until_ns"))
    if not 0 < steps <= _MOST_STEPS:
        raise ValueError(f"a window must have 1 to {_MOST_STEPS} steps, not {steps}")
    return Request(steps, first, asked.get("stacks") is True, until)


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise ValueError("this version does not understand the request")
    return value

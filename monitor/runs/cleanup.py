"""Removes dead rings from shared memory: once stored and an hour old, or when there are too many."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from monitor.model.clock import Moment
from monitor.model.records import RecordSink
from monitor.runs.follow import Follower
from monitor.runs.trouble import Trouble
from sdk import ring

CLEAN_EVERY_SECONDS = 30.0
KEEP_SECONDS = 3600.0
KEEP_WORKER_SECONDS = 60.0
KEEP_UNDER_PRESSURE_SECONDS = 60.0
PRESSURE_BYTES = 512 * 1024 * 1024
PRESSURE_FREE_RATIO = 0.1
"""Our choices: an hour is enough to look at a failed run; if dead rings take more than this size, or less of
the file system is free, a minute has to do."""
MAX_FILES_PER_OWNER = 256
"""Dead rings per owner; beyond this, the oldest go as if space were short."""


class DeadRing(Struct, frozen=True):
    """A ring whose writer is gone and whose records have all been read."""

    folder: str
    name: str
    """Strings the listing has anyway: there may be a thousand of these for an hour."""
    inode: int
    key: str
    ended: float
    """On the monotonic clock, because the wall clock may be set."""
    size: int
    worker: bool
    owner: int = 0

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}"


class Cleaner:
    """Goes through the dead rings now and then."""

    def __init__(self, sink: RecordSink, trouble: Trouble) -> None:
        self._sink = sink
        self._trouble = trouble
        self._dead: list[DeadRing] = []
        self._next = 0.0

    def add(self, follower: Follower) -> None:
        found, ended = follower.found, follower.ended_at or 0.0
        size = ring.DATA_AT + follower.header.slots * ring.SLOT_BYTES
        key, worker = follower.identity.key, follower.is_worker
        folder, name = str(found.candidate.folder.path), found.candidate.name
        self._dead.append(DeadRing(folder, name, found.inode, key, ended, size, worker, found.owner))

    def clean(self, now: Moment) -> None:
        if now.monotonic < self._next:
            return
        self._next = now.monotonic + CLEAN_EVERY_SECONDS
        stored = {dead.key for dead in self._dead if self._sink.finished(dead.key)}
        gone = surplus(self._dead, now.monotonic, stored)
        for dead in gone:
            remove(dead)
            if now.monotonic - dead.ended <= _keep_seconds(dead):
                self._trouble.note(dead.owner, "files", dead.name)
        kept = set(self._dead).difference(gone)
        self._dead = [dead for dead in self._dead if dead in kept]


def surplus(dead: Sequence[DeadRing], now: float, stored: set[str]) -> list[DeadRing]:
    """Which rings may go now: the old ones, then as many as space requires, oldest first, starting with
    owners who have too many."""
    dead = sorted(dead, key=lambda one: one.ended)
    gone = {one: None for one in dead if one.key in stored and now - one.ended > _keep_seconds(one)}
    rest = [one for one in dead if one not in gone and now - one.ended > KEEP_UNDER_PRESSURE_SECONDS]
    gone |= dict.fromkeys(_beyond_quota([one for one in rest if one.key in stored]))
    too_much = sum(one.size for one in dead if one not in gone) - PRESSURE_BYTES
    short = {folder: _is_short_of_room(folder) for folder in {one.folder for one in dead}}
    for one in rest:
        if one not in gone and (too_much > 0 or short[one.folder]):
            gone[one] = None
            too_much -= one.size
    return list(gone)


def _keep_seconds(dead: DeadRing) -> float:
    return KEEP_WORKER_SECONDS if dead.worker else KEEP_SECONDS


def _beyond_quota(dead: Sequence[DeadRing]) -> list[DeadRing]:
    """The oldest of every owner who has too many."""
    counts = Counter(one.owner for one in dead)
    surplus = []
    for one in dead:
        if counts[one.owner] > MAX_FILES_PER_OWNER:
            counts[one.owner] -= 1
            surplus.append(one)
    return surplus


def _is_short_of_room(folder: str) -> bool:
    if not hasattr(os, "statvfs"):
        return False
    try:
        room = os.statvfs(folder)
    except OSError:
        return False
    return room.f_blocks > 0 and room.f_bavail < PRESSURE_FREE_RATIO * room.f_blocks


def remove(dead: DeadRing) -> bool:
    """Unlink exactly that file: not a link, nor a file that has since taken its name. False: it stays."""
    with contextlib.suppress(OSError):
        status = os.lstat(dead.path)
        if not stat.S_ISREG(status.st_mode) or status.st_ino != dead.inode:
            return True
        if dead.name.endswith(ring.SUFFIX):
            os.unlink(dead.path)
            return True
    return not os.path.lexists(dead.path)

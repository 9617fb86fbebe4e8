"""Take dead rings out of shared memory: when they are stored and an hour old, or when room is short."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from sdk import ring

KEEP_SECONDS = 3600.0
KEEP_WORKER_SECONDS = 60.0
KEEP_UNDER_PRESSURE_SECONDS = 60.0
PRESSURE_BYTES = 512 * 1024 * 1024
PRESSURE_FREE_RATIO = 0.1


@dataclass(frozen=True, slots=True)
class DeadRing:
    """A ring whose writer is gone and whose every record has been read."""

    path: Path
    inode: int
    key: str
    ended: float
    size: int
    worker: bool


def surplus(dead: list[DeadRing], now: float, stored: set[str]) -> list[DeadRing]:
    """Which rings may go now, oldest first."""
    dead = sorted(dead, key=lambda one: one.ended)
    limits = {True: KEEP_WORKER_SECONDS, False: KEEP_SECONDS}
    old = [one for one in dead if one.key in stored and now - one.ended > limits[one.worker]]
    too_much = sum(one.size for one in dead) - sum(one.size for one in old) - PRESSURE_BYTES
    for one in dead:
        if one in old:
            continue
        if (too_much > 0 or _is_short_of_room(one.path)) and now - one.ended > KEEP_UNDER_PRESSURE_SECONDS:
            old.append(one)
            too_much -= one.size
    return old


def _is_short_of_room(path: Path) -> bool:
    if not hasattr(os, "statvfs"):
        return False
    try:
        room = os.statvfs(path.parent)
    except OSError:
        return False
    return room.f_blocks > 0 and room.f_bavail < PRESSURE_FREE_RATIO * room.f_blocks


def remove(dead: DeadRing) -> bool:
    """Unlink exactly that file: not a link, not one that took its name since. False: it stays."""
    with contextlib.suppress(OSError):
        status = os.lstat(dead.path)
        if not stat.S_ISREG(status.st_mode) or status.st_ino != dead.inode:
            return True
        if dead.path.suffix == ring.SUFFIX:
            os.unlink(dead.path)
            return True
    return not os.path.lexists(dead.path)

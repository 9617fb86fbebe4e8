"""Who owns a file or a process, and the run ids derived from that.

The kernel says who owns a file; whatever is written inside it is only a claim. So a run's id includes its
owner, except for the reading user's own runs: nobody can claim another user's id.
"""

from __future__ import annotations

import os
from functools import lru_cache

from msgspec import Struct

OTHER_OWNERS = -1
UNKNOWN_OWNER = -1
"""For history rows from before owners were recorded."""


class RingCount(Struct, frozen=True):
    """How often something went wrong with one user's rings, or was left out, since the start."""

    owner_uid: int
    """The owner of the files; `OTHER_OWNERS` when there are too many to tell apart."""
    user: str
    reason: str
    """One of `monitor.runs.trouble.Reason`."""
    count: int
    example: str | None = None
    """The most recent one: which file or run, and why."""


def own_uid() -> int:
    """The user this process acts for; 0 where files have no numeric owner (Windows)."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


@lru_cache(maxsize=1024)
def user_name(uid: int) -> str:
    """The user's name; the number when the machine does not know it (a container's own user)."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError, OverflowError):
        return str(uid)


def run_id(claimed: str, owner: int) -> str:
    """A claimed id never contains an @ (see `monitor.runs.meta`), so no two owners get the same id."""
    return claimed if owner == own_uid() else f"{claimed}@{owner}"

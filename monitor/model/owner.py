"""Who owns a file or a process, and the ids of runs that follow from it.

The kernel says who owns a file; whatever is written inside it is a claim. So the id of a run has its
owner in it, but for runs of the user who reads them: nobody can claim another user's id.
"""

from __future__ import annotations

import os
from functools import lru_cache

from msgspec import Struct

OTHER_OWNERS = -1
UNKNOWN_OWNER = -1
"""Of rows of a history from before owners were kept."""


class RingCount(Struct, frozen=True):
    """How often something went wrong with one user's rings, or had to be left out, since the start."""

    owner_uid: int
    """The owner of the files; `OTHER_OWNERS` when there are too many to tell apart."""
    user: str
    reason: str
    """One of `monitor.runs.trouble.Reason`."""
    count: int
    example: str | None = None
    """The newest one: which file or run, and why."""


def own_uid() -> int:
    """The user this process acts for. Where files have no numeric owner (Windows), it is 0."""
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
    """A claimed id never has an @ in it (see `monitor.runs.meta`), so no two owners share an answer."""
    return claimed if owner == own_uid() else f"{claimed}@{owner}"

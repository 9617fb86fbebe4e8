"""Opening a ring: directory, file name, and the reason if it cannot be opened."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from .. import ring
from ..folder import problem
from ._file import RingWriter, is_locked

KEEP = 64
"""Chosen: ended rings kept per user when no daemon removes them."""


class NoRing(Exception):
    """There can be no ring; the message says why. The monitor continues without one."""


class SwitchedOff(NoRing):
    """The user has switched rings off."""


def disabled() -> bool:
    return os.environ.get("GPUMON_DISABLE", "") not in ("", "0")


def open_ring(
    meta: dict[str, Any], directory: str | None = None, started: tuple[int, int] | None = None
) -> RingWriter:
    """Create the ring for `meta["run"]`; a name already taken gets a number appended."""
    if disabled():
        raise SwitchedOff("disabled by GPUMON_DISABLE")
    folder = directory or ring.default_directory()
    try:
        prepare(folder)
        _tidy(folder)
        return _create(folder, meta, started)
    except (OSError, ValueError) as error:
        raise NoRing(f"cannot create a ring in {folder}: {error}") from error


def prepare(folder: str) -> None:
    """Create the folder if necessary; raises `OSError` if a ring would not be safe there."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = problem(folder)
    if found is not None:
        raise PermissionError(found)


def _create(folder: str, meta: dict[str, Any], started: tuple[int, int] | None) -> RingWriter:
    base = meta["run"]
    for attempt in range(1, 1000):
        meta["run"] = base if attempt == 1 else f"{base}-{attempt}"
        path = os.path.join(folder, f"{meta['run']}.{meta['rank']}{ring.SUFFIX}")
        if os.path.exists(path):
            continue
        try:
            return RingWriter(path, meta, started=started)
        except FileExistsError:
            continue
    raise OSError(f"there are already a thousand rings named {base}")


def _tidy(folder: str) -> None:
    """Keep the newest `KEEP` rings and remove older ones without a writer. Users cannot list a service's
    folder; there the daemon tidies up."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name.endswith(ring.SUFFIX)]
    except PermissionError:
        return
    if len(found) <= KEEP:
        return
    dated = []
    for entry in found:
        with contextlib.suppress(OSError):
            dated.append((entry.stat(follow_symlinks=False).st_ctime, entry.path))
    for _, path in sorted(dated)[:-KEEP]:
        with contextlib.suppress(OSError):
            if not is_locked(path):
                os.unlink(path)

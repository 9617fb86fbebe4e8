"""One directory of rings: which of its names may be rings, and which of those are new.

Everybody may write there, so nothing depends on how much it contains: a crowded folder is listed one slice
per poll, and names are forgotten only after a complete listing.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct

from monitor.model.owner import own_uid, user_name
from monitor.runs.trouble import Trouble
from sdk import ring

SLICE = 16_384
"""Names examined per poll."""
REMEMBERED = 65_536
"""Names remembered; beyond this, names that are not rings are examined again each time."""
MAX_FILE_BYTES = ring.DATA_AT + 2 * ring.MAX_BYTES
FRESH_NS = 100_000_000
"""A name added this soon after another may not change the folder's mtime: look once more."""
_FLAGS = os.O_RDONLY
for _name in ("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"):  # if the platform has them
    _FLAGS |= getattr(os, _name, 0)


class Candidate(Struct, frozen=True):
    """A name that may be a ring: a plain file of a likely size."""

    folder: Folder
    name: str
    inode: int
    owner: int
    changed_ns: int

    @property
    def path(self) -> Path:
        return self.folder.path / self.name

    @property
    def is_worker(self) -> bool:
        """Judged by its name, which only affects the order among one owner's rings."""
        return ".w" in self.name


class Folder:
    """Checked once a poll; if unchanged, that is one system call."""

    def __init__(self, path: Path, run: str | None, trouble: Trouble) -> None:
        self.path = path
        self.run = run
        """Only this run's rings, if one was named."""
        self._trouble = trouble
        self._listing: Iterator[os.DirEntry[str]] | None = None
        self._changed = -1
        """The folder's mtime at the last complete listing; -1: list it anyway."""
        self._stamp = -1
        self._pass = 0
        self._seen: dict[tuple[int, str], int] = {}
        """(inode, name) of everything handed out or refused → the listing it was last in."""
        self._distrust: str | None = None

    def look(self) -> list[Candidate]:
        """Names that are new since the last time, at most a slice."""
        try:
            if self._listing is None and not self._begin():
                return []
            return list(self._slice())
        except FileNotFoundError:
            self.stop()
        except OSError as error:
            self._trouble.note(_owner(self.path), "listing", f"{self.path}: {error.strerror}")
            self.stop()
        return []

    def look_again(self) -> None:
        """Something was left behind for lack of room: list the folder again, changed or not."""
        self._changed = self._stamp = -1

    def forget(self, name: str, inode: int) -> None:
        """This name may be handed out again."""
        self._seen.pop((inode, name), None)

    def stop(self) -> None:
        """Abandon a listing; what is known stays known."""
        if self._listing is not None:
            self._listing.close()  # type: ignore[attr-defined]
        self._listing, self._changed = None, -1

    def _begin(self) -> bool:
        """Open the folder for a listing; False if there is no need, or it cannot be trusted."""
        status = os.lstat(self.path)
        if status.st_mtime_ns == self._changed or not self._is_trusted(status):
            return False
        fresh = abs(time.time_ns() - status.st_mtime_ns) < FRESH_NS
        self._stamp = -1 if fresh else status.st_mtime_ns
        self._listing = _open(self.path, status)
        self._pass += 1
        return True

    def _is_trusted(self, status: os.stat_result) -> bool:
        distrust = _distrust(status)
        if distrust != self._distrust and distrust is not None:
            self._trouble.note(status.st_uid, "folder", f"{self.path} {distrust}")
        self._distrust = distrust
        return distrust is None

    def _is_wanted(self, name: str) -> bool:
        """Further trainings of the same command append a number to the run's id."""
        if self.run is None:
            return True
        run, _, number = name.partition(".")[0].removeprefix(self.run).partition("-")
        return name.startswith(self.run) and not run and (not number or number.isdigit())

    def _slice(self) -> Iterator[Candidate]:
        assert self._listing is not None
        looked = 0
        for entry in islice(self._listing, SLICE):
            looked += 1
            if entry.name.endswith(ring.SUFFIX) and self._is_wanted(entry.name):
                key = (entry.inode(), entry.name)
                candidate = None if key in self._seen else self._candidate(entry)
                if candidate is not None or key in self._seen or len(self._seen) < REMEMBERED:
                    self._seen[key] = self._pass
                if candidate is not None:
                    yield candidate
        if looked < SLICE:
            self._finish()

    def _finish(self) -> None:
        self._listing, self._changed = None, self._stamp
        self._seen = {key: at for key, at in self._seen.items() if at == self._pass}

    def _candidate(self, entry: os.DirEntry[str]) -> Candidate | None:
        try:
            status = os.lstat(self.path / entry.name)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            self._trouble.note(status.st_uid, "not_a_file", entry.name)
        elif not ring.DATA_AT < status.st_size <= MAX_FILE_BYTES:
            self._trouble.note(status.st_uid, "size", f"{entry.name}: {status.st_size} bytes")
        else:
            return Candidate(self, entry.name, entry.inode(), status.st_uid, status.st_ctime_ns)
        return None


def _open(path: Path, checked: os.stat_result) -> Iterator[os.DirEntry[str]]:
    """A listing of exactly the folder that was checked. Raises `OSError`."""
    if os.scandir not in os.supports_fd:
        return os.scandir(path)
    fd = os.open(path, _FLAGS)
    try:
        if not os.path.samestat(os.fstat(fd), checked):
            raise OSError(0, "replaced while being read")
        return os.scandir(fd)
    finally:
        os.close(fd)


def _distrust(status: os.stat_result) -> str | None:
    """Why a folder must not be read: its owner could remove other people's rings. Root may read any user's
    folder."""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not stat.S_ISDIR(status.st_mode):
        return "is not a directory"
    if own_uid() != 0 and status.st_uid not in (0, own_uid()):
        return f"belongs to {user_name(status.st_uid)}"
    return None


def _owner(path: Path) -> int:
    try:
        return os.lstat(path).st_uid
    except OSError:
        return own_uid()

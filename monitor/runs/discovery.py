"""Find rings. Every file is hostile until proved a ring: no symlinks, no devices, no giants, no crowds."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sdk import ring

MAX_RINGS = 1024
MAX_PER_OWNER = 512
MAX_ENTRIES = 8192
MAX_FILE_BYTES = ring.DATA_AT + 2 * ring.MAX_BYTES
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):  # what the platform has
    _FLAGS |= getattr(os, _name, 0)


@dataclass(frozen=True, slots=True)
class Found:
    """A ring file, opened and checked by size, type and owner."""

    path: Path
    fd: int
    inode: int
    owner: int


class Discovery:
    """Scans the directories; a directory that has not changed is not listed again."""

    def __init__(self, directories: Sequence[Path], run: str | None = None) -> None:
        self.directories = tuple(dict.fromkeys(Path(directory) for directory in directories))
        self.prefix = f"{run}." if run else ""
        """Rings of this run only, when one was named."""
        self.dropped: Counter[str] = Counter()
        self.owners: Counter[int] = Counter()
        self._changed: dict[Path, int] = {}
        self._known: dict[Path, int] = {}
        """Path → inode of what was already handed out or refused."""
        self._retry = False

    def scan(self, room: int = MAX_RINGS) -> list[Found]:
        """Rings that are new since the last scan, at most `room`. The caller owns the descriptors."""
        found: list[Found] = []
        retry, self._retry = self._retry, False
        if retry:
            self.dropped["rings"] = self.dropped["owner"] = 0
        for directory in self.directories:
            changed = _changed(directory)
            if changed is None or (changed == self._changed.get(directory) and not retry):
                continue
            self._changed[directory] = changed
            found += self._scan(directory, room - len(found))
        return found

    def _scan(self, directory: Path, room: int) -> Iterator[Found]:
        entries = _entries(directory, self.prefix)
        self.dropped["entries"] = max(0, len(entries) - MAX_ENTRIES)
        present = dict(entries[:MAX_ENTRIES])
        for path in [p for p in self._known if p.parent == directory and p not in present]:
            del self._known[path]
        for path, inode in present.items():
            if self._known.get(path) == inode:
                continue
            if room <= 0:
                self.dropped["rings"] += 1
                self._retry = True
                continue
            self._known[path] = inode
            opened = self._open(path, inode)
            if opened is not None:
                room -= 1
                yield opened

    def _open(self, path: Path, inode: int) -> Found | None:
        try:
            fd = os.open(path, _FLAGS)
        except OSError as error:
            full = error.errno in (errno.EMFILE, errno.ENFILE)
            self._refused(path, "rings" if full else "unreadable", again=full)
            return None
        status = os.fstat(fd)
        reason = self._refuse(status)
        if reason is None:
            self.owners[status.st_uid] += 1
            return Found(path, fd, inode, status.st_uid)
        os.close(fd)
        self._refused(path, reason, again=reason == "owner")
        return None

    def _refused(self, path: Path, reason: str, *, again: bool) -> None:
        """Count it; what only lacked room is looked at again at the next scan."""
        self.dropped[reason] += 1
        if again:
            del self._known[path]
            self._retry = True

    def _refuse(self, status: os.stat_result) -> str | None:
        if not stat.S_ISREG(status.st_mode):
            return "not_a_file"
        if not ring.DATA_AT < status.st_size <= MAX_FILE_BYTES:
            return "size"
        if self.owners[status.st_uid] >= MAX_PER_OWNER:
            return "owner"
        return None

    def release(self, owner: int) -> None:
        """A ring was let go of: its owner may have another one."""
        self.owners[owner] -= 1


def _changed(directory: Path) -> int | None:
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return None


def _entries(directory: Path, prefix: str) -> list[tuple[Path, int]]:
    """Names that look like rings, with their inodes."""
    try:
        with os.scandir(directory) as listing:
            return [
                (Path(entry.path), entry.inode())
                for entry in listing
                if entry.name.endswith(ring.SUFFIX) and entry.name.startswith(prefix)
            ]
    except OSError:
        return []

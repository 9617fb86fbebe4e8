"""Finds rings. Every file is hostile until proven a ring: no symlinks, no devices, no huge files, no floods.

Owners with many rings wait for those with few: the next ring is always taken from the owner who has the
fewest, and each owner's newest come first.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from monitor.runs.folder import MAX_FILE_BYTES, Candidate, Folder
from monitor.runs.trouble import Trouble
from sdk import ring

MAX_RINGS = 1024
MAX_PER_OWNER = 512
"""Our choices: 8 GPUs with 64 workers each fit; every ring holds a descriptor."""
MAX_WAITING = 1024
"""Names of one owner that may wait to be opened; older ones are found again later."""
NEW_PER_POLL = 256
"""Rings opened per poll, so that a crowd is worked off in small pieces."""
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):  # if the platform has them
    _FLAGS |= getattr(os, _name, 0)
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class Found(Struct, frozen=True):
    """A ring file, opened, with size, type and owner checked."""

    candidate: Candidate
    fd: int
    device: int
    inode: int
    owner: int

    @property
    def path(self) -> Path:
        return self.candidate.path

    @property
    def identity(self) -> tuple[int, int]:
        return self.device, self.inode


class Discovery:
    """Hands out each ring once, until it is released."""

    def __init__(self, directories: Sequence[Path], trouble: Trouble, run: str | None = None) -> None:
        places = dict.fromkeys(Path(directory) for directory in directories)
        self.folders = tuple(Folder(place, run, trouble) for place in places)
        self.trouble = trouble
        self.held: Counter[int] = Counter()
        """Owner → rings handed out and not yet released."""
        self._open: set[tuple[int, int]] = set()
        self._waiting: dict[int, deque[Candidate]] = {}
        """Owner → its candidates, the next one at the right end."""
        self._left_behind: dict[int, set[Folder]] = {}
        """Owner → folders with more of its names than may wait."""

    def look(self) -> None:
        """Collect what is new in the folders."""
        for folder in self.folders:
            self._queue(folder.look())

    def take(self) -> list[Found]:
        """New rings, always from the owner with the fewest, as many as there is room for. The caller owns the
        descriptors."""
        found: list[Found] = []
        room = min(MAX_RINGS - self.held.total(), NEW_PER_POLL)
        owners = set(self._waiting)
        while owners and len(found) < room:
            owner = min(owners, key=lambda one: self.held[one])
            try:
                one = self._next(owner)
            except OSError:  # no descriptors left: everybody waits
                break
            if one is not None:
                found.append(one)
            else:
                owners.remove(owner)
        return found

    @property
    def waiting(self) -> dict[int, int]:
        """Owner → rings waiting for room or their turn."""
        return {owner: len(queue) for owner, queue in self._waiting.items()}

    def _queue(self, candidates: Sequence[Candidate]) -> None:
        owners = {candidate.owner for candidate in candidates}
        for candidate in candidates:
            self._waiting.setdefault(candidate.owner, deque()).append(candidate)
        for owner in owners:
            self._note_surplus(owner, candidates)
            ordered = sorted(self._waiting[owner], key=lambda one: (not one.is_worker, one.changed_ns))
            kept = ordered[-MAX_WAITING:]
            for candidate in ordered[: len(ordered) - len(kept)]:
                self._leave_for_later(candidate)
            self._waiting[owner] = deque(kept)

    def _note_surplus(self, owner: int, candidates: Sequence[Candidate]) -> None:
        """Count, once, what has to wait because its owner's share is used up."""
        new = [candidate.name for candidate in candidates if candidate.owner == owner]
        surplus = self.held[owner] + len(self._waiting[owner]) - MAX_PER_OWNER
        self.trouble.note(owner, "rings", f"{new[0]}: more than {MAX_PER_OWNER}", min(surplus, len(new)))

    def _leave_for_later(self, candidate: Candidate) -> None:
        self.trouble.note(candidate.owner, "names", candidate.name)
        candidate.folder.forget(candidate.name, candidate.inode)
        self._left_behind.setdefault(candidate.owner, set()).add(candidate.folder)

    def _next(self, owner: int) -> Found | None:
        """This owner's next ring, or None if there are no more or its share is used up. Raises `OSError` when
        no more files can be opened."""
        queue = self._waiting[owner]
        while queue and self.held[owner] < MAX_PER_OWNER:
            candidate = queue[-1]
            opened = self._open_one(candidate)
            queue.pop()
            if opened is not None:
                return opened
        if not queue:
            del self._waiting[owner]
            for folder in self._left_behind.pop(owner, ()):
                folder.look_again()
        return None

    def _open_one(self, candidate: Candidate) -> Found | None:
        try:
            fd = os.open(candidate.path, _FLAGS)
        except OSError as error:
            if error.errno in _FULL:
                self.trouble.note(candidate.owner, "rings", f"{candidate.name}: {error.strerror}")
                raise
            if error.errno != errno.ENOENT:
                self.trouble.note(candidate.owner, "unreadable", f"{candidate.name}: {error.strerror}")
            return None
        return self._checked(candidate, fd)

    def _checked(self, candidate: Candidate, fd: int) -> Found | None:
        """The name may refer to another file by now: what counts is the file that was opened."""
        status = os.fstat(fd)
        found = Found(candidate, fd, status.st_dev, status.st_ino, status.st_uid)
        if not stat.S_ISREG(status.st_mode) or not ring.DATA_AT < status.st_size <= MAX_FILE_BYTES:
            self.trouble.note(status.st_uid, "size", candidate.name)
        elif found.identity in self._open:
            self.trouble.note(status.st_uid, "duplicate", candidate.name)
        else:
            self.held[status.st_uid] += 1
            self._open.add(found.identity)
            return found
        os.close(fd)
        return None

    def closed(self, found: Found) -> None:
        """Its descriptor was closed: another file may now get its inode."""
        self._open.discard(found.identity)

    def released(self, found: Found) -> None:
        """A ring was released: its owner may have another."""
        self.held[found.owner] -= 1
        if self.held[found.owner] <= 0:
            del self.held[found.owner]

    def put_back(self, found: Found, why: str = "made room for another owner") -> None:
        """Release a ring, in favour of an owner with fewer or for lack of memory; it queues up again."""
        self.closed(found)
        self.released(found)
        self.trouble.note(found.owner, "rings", f"{found.candidate.name}: {why}")
        self._waiting.setdefault(found.owner, deque()).appendleft(found.candidate)

    def givers(self) -> Counter[int]:
        """Owner → how many of its rings must give way so that owners with fewer get their share: the owner
        with the most always gives, one at a time."""
        if not self._waiting:
            return Counter()
        held, waiting, gives = Counter(self.held), self.waiting, Counter[int]()
        room = MAX_RINGS - held.total()
        for _ in range(NEW_PER_POLL):
            wanting = [owner for owner, count in waiting.items() if count and held[owner] < MAX_PER_OWNER]
            if not wanting:
                break
            taker = min(wanting, key=lambda one: held[one])
            if room <= 0:
                giver, most = held.most_common(1)[0]
                if held[taker] + 1 >= most:
                    break
                held[giver] -= 1
                gives[giver] += 1
                room += 1
            room -= 1
            held[taker] += 1
            waiting[taker] -= 1
        return gives

    def close(self) -> None:
        for folder in self.folders:
            folder.stop()

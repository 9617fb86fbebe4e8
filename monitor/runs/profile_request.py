"""Asks a running rank for a window of torch's profiler: through a private folder next to its ring, which only
the run's owner or root can create and in which the rank leaves its trace. `sdk/profiling` is the other
side."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from monitor.model.errors import UserError
from monitor.model.owner import own_uid, user_name
from monitor.runs.liveness import writer_pid
from sdk import ring

TOGETHER = 2.5
"""Seconds until every rank has seen its request: each checks once a second, after a step."""
REMOVALS, REMOVAL_SECONDS = 20, 0.05
"""How often removing the folder is tried, and the wait in between: an answer takes far less than a second."""
State = Literal["requested", "taking", "written", "refused", "gone"]
STATES: dict[str, State] = {ring.TAKING: "taking", ring.WRITTEN: "written", ring.REFUSED: "refused"}
_LEVEL = 3
"""Our choice: traces shrink to a tenth at any level, and this one is several times faster than the
default."""
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):  # if the platform has them
    _FLAGS |= getattr(os, _name, 0)


@dataclass(frozen=True, slots=True)
class Wish:
    """A window of `steps` steps, not before step `first`, abandoned at `until_ns` (monotonic)."""

    steps: int
    first: int
    stacks: bool
    until_ns: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a request."""

    state: State
    reason: str = ""
    steps: int = 0
    """Steps the rank has committed."""


class ProfileRequest:
    """One rank. Always close it: that withdraws whatever is pending and leaves nothing behind."""

    def __init__(self, path: Path, rank: int) -> None:
        """Raises `UserError` with the reason if this rank cannot be asked."""
        self.rank = rank
        self._path = path
        self._placed = False
        self._fd = _opened(path)
        try:
            self._owner = os.fstat(self._fd).st_uid
            self._check()
        except BaseException:
            os.close(self._fd)
            raise

    def _check(self) -> None:
        if own_uid() not in (0, self._owner):
            raise UserError(_whose(user_name(self._owner)))
        header = self._header()
        if header.state != ring.S_RUNNING or not self._alive(header):
            raise UserError(f"rank {self.rank} of this run has ended; only a running rank can be profiled")
        if not header.requests:
            raise UserError(
                "this run was started with a gpumon version that does not support profiling requests",
                hint="start it with this version, or profile it with torch.profiler in the script",
            )
        self.folder = Path(ring.request_folder(str(self._path), header.requests))

    def _header(self) -> ring.Header:
        try:
            return ring.read_header(self._fd, os.fstat(self._fd).st_size)
        except ring.RingError as error:
            raise UserError(f"{self._path} is not a ring: {error}") from error

    def _alive(self, header: ring.Header) -> bool:
        return writer_pid(self._fd, header, self._owner) is not None

    @property
    def steps(self) -> int:
        """Steps the rank has committed so far."""
        return self._header().head

    def place(self, wish: Wish) -> None:
        """Make the request. The folder gets its final name only once it is complete."""
        try:
            made = Path(tempfile.mkdtemp(prefix=".profile-", dir=self.folder.parent))  # only for us
        except OSError as error:
            raise UserError(f"cannot place a request next to the ring: {error}") from error
        try:
            request = made / ring.REQUEST
            asked = {name: getattr(wish, name) for name in Wish.__slots__}
            request.touch(mode=0o600)
            request.write_text(json.dumps(asked), encoding="utf-8")
            self._hand_over(made, request)
            os.rename(made, self.folder)
        except OSError as error:
            raise UserError(f"rank {self.rank} is being profiled already ({error.strerror})") from error
        finally:
            self._placed = not made.exists()
            shutil.rmtree(made, ignore_errors=True)

    def _hand_over(self, *paths: Path) -> None:
        """What root creates for a user must belong to that user."""
        if own_uid() != self._owner:
            for path in paths:
                os.chown(path, self._owner, -1, follow_symlinks=False)

    def standing(self) -> Standing:
        """The rank's answer; a dead rank gives none."""
        header = self._header()
        alive = header.state == ring.S_RUNNING and self._alive(header)
        said = self._said()
        if not alive and said.state in ("requested", "taking"):
            return Standing("gone", "it ended without answering: killed, or ended without a chance to react")
        return Standing(said.state, said.reason, header.head)

    def _said(self) -> Standing:
        try:
            said = json.loads((self.folder / ring.STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return Standing("requested")
        if not isinstance(said, dict):
            return Standing("requested")
        return Standing(STATES.get(str(said.get("state")), "refused"), str(said.get("reason", "")))

    def fetch(self, target: Path) -> None:
        """Store the trace at `target`, compressed if its name says so; nobody else may read it."""
        with open(self.folder / ring.TRACE, "rb") as source, _private(target) as sink:
            shutil.copyfileobj(source, sink, 1 << 20)

    def close(self) -> None:
        os.close(self._fd)
        if self._placed:
            self._remove()
            self._placed = False

    def _remove(self) -> None:
        """The rank may write its answer at this very moment, so that the folder is not empty in the end."""
        for _ in range(REMOVALS):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(REMOVAL_SECONDS)


def make_wish(
    asked: Sequence[ProfileRequest], step_seconds: float | None, *, steps: int, stacks: bool, timeout: float
) -> Wish:
    """One for all ranks: they record the same steps, so that their collectives can be compared."""
    first = 0
    if len(asked) > 1:
        ahead = math.ceil(TOGETHER / (step_seconds or TOGETHER)) + 1
        first = max(request.steps for request in asked) + ahead
    return Wish(steps, first, stacks, time.monotonic_ns() + int(timeout * 1e9))


def _opened(path: Path) -> int:
    try:
        return os.open(path, _FLAGS)
    except PermissionError:
        owner = "another user"
        with contextlib.suppress(OSError):
            owner = user_name(os.lstat(path).st_uid)
        raise UserError(_whose(owner)) from None
    except OSError as error:
        raise UserError(f"cannot open {path}: {error.strerror}") from error


def _whose(owner: str) -> str:
    return f"this run belongs to {owner}; only its owner or root can profile it"


@contextlib.contextmanager
def _private(target: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as plain:
        if target.suffix != ".gz":
            yield plain
            return
        with gzip.GzipFile(target.stem, "wb", _LEVEL, plain) as packed:
            yield packed

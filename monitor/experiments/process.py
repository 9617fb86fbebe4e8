"""One process of a trial: started in a session of its own, ended with everything it started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

LOOK_SECONDS = 0.05
GRACE_SECONDS = 5.0
"""A choice: time for the other ranks, once the first has told its result."""
_TAIL = 4000


class Explored(msgspec.Struct, frozen=True):
    """What was tried in blocks of steps while the training ran."""

    stays: tuple[str, ...] = ()
    """Settings that were on at the end."""
    tried: tuple[dict[str, Any], ...] = ()
    together: tuple[float, float, float] | None = None
    """What all that stayed brought: likely, low, high."""
    notes: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True):
    """What a process of the trial wrote at its end."""

    rank: int = 0
    steps: int = 0
    losses: tuple[float, ...] = ()
    knobs: dict[str, dict[str, str]] = {}
    explored: Explored | None = None
    memory_bytes: int | None = None
    device_memory_bytes: int | None = None


class Ended(msgspec.Struct, frozen=True):
    """How a trial's command came to its end."""

    code: int | None
    """None: it was ended because time was up."""
    told: Told | None
    """Of the lowest rank that trained."""
    last_words: str
    """The last line it wrote, where an error is told."""


def run_to_end(words: list[str], environment: dict[str, str], cwd: str, folder: Path, limit: float) -> Ended:
    """Run the command until it ends, has told its result, or `limit` seconds are over. Ctrl-C ends it too,
    and so does any other way out of here: nothing it started stays."""
    log = folder / "output.txt"
    with log.open("wb") as output:
        child = subprocess.Popen(
            words, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        code = _wait(child, folder, time.monotonic() + limit)
    finally:
        end_all(child.pid, environment["GPUMON_RUN_ID"])
        child.wait()
    return Ended(code, read_told(folder), _last_words(log))


def _wait(child: subprocess.Popen[bytes], folder: Path, deadline: float) -> int | None:
    told: float | None = None
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(LOOK_SECONDS)
        now = time.monotonic()
        if told is None and any(folder.glob("*.json")):
            told = now
        if told is not None and now > told + GRACE_SECONDS:
            return 0
        if now > deadline:
            return None


def end_all(session: int, run_id: str) -> None:
    """Everything of the child's session, and whatever else still carries the run's name."""
    mark = f"GPUMON_RUN_ID={run_id}".encode()
    for _ in range(3):  # one that is being forked while we look is there the next time
        found = [pid for pid in _pids() if _belongs(pid, session, mark)]
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _pids() -> Iterator[int]:
    own = os.getpid()
    return (int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != own)


def _belongs(pid: int, session: int, mark: bytes) -> bool:
    try:
        if os.getsid(pid) == session:
            return True
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def read_told(folder: Path) -> Told | None:
    """A process that was killed while it wrote has told nothing."""
    found: list[Told] = []
    for path in sorted(folder.glob("*.json")):
        with contextlib.suppress(OSError, ValueError, msgspec.ValidationError):
            found.append(msgspec.convert(_json(path), Told))
    return min(found, key=lambda one: (one.rank, -one.steps), default=None)


def _json(path: Path) -> Any:
    """By the standard library: a loss may be NaN."""
    return json.loads(path.read_text(encoding="utf-8"))


def _last_words(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")

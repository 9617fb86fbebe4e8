"""Real users of one machine: processes with their own uids that write rings into a shared folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.model.clock import Moment
from monitor.model.run import Run
from monitor.runs.reader import RunReader
from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[2]
ALICE, MALLORY = 61_101, 61_102

USER = """
import json, os, sys, time
from array import array
from sdk import ring
from sdk.writer import RingWriter

uid, folder = int(sys.argv[1]), sys.argv[2]
os.chdir("/")
if uid != os.getuid():
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
writers = {}

def open_(rings, steps=0, slots=64, scalars=()):
    for name, meta in rings.items():
        body = {"kind": "trainer", "rank": 0, "name": "net", **meta}
        writers[name] = RingWriter(os.path.join(folder, name), body, slots=slots)
        for at, value in enumerate(scalars):
            writers[name].scalars[at] = value
    step(steps, list(rings))

def step(count, names=None):
    record = array("Q", ring.EMPTY_RECORD)
    for name in names or writers:
        for _ in range(count):
            record[ring.W_END] = time.monotonic_ns()
            record[ring.W_BEGIN] = record[ring.W_END] - 1000
            record[ring.W_SAMPLES] = 2
            writers[name].commit(record)

def end(state=ring.S_ENDED):
    for writer in writers.values():
        writer.close(state)
    writers.clear()

def started(mono, wall):
    for writer in writers.values():
        writer.words[ring.H_STARTED_MONO], writer.words[ring.H_STARTED_WALL] = mono, wall

def files(names, size=0):
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:
            file.truncate(size)

for line in sys.stdin:
    what, values = json.loads(line)
    globals()[what](**values)
    print("done", flush=True)
"""


class Person:
    """A user's process; every call returns once it is done."""

    def __init__(self, process: subprocess.Popen[str], uid: int) -> None:
        self.process = process
        self.uid = uid

    def _do(self, what: str, **values: Any) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([what, values]) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", f"{what} failed"

    def train(self, *runs: str, steps: int = 0, slots: int = 64, **meta: Any) -> None:
        """Write rank 0 of each of these runs."""
        self.write({f"{run}.0.ring": {"run": run, **meta} for run in runs}, steps=steps, slots=slots)

    def write(
        self,
        rings: dict[str, dict[str, Any]],
        steps: int = 0,
        slots: int = 64,
        scalars: Sequence[float] = (),
    ) -> None:
        """Write rings by file name, each with its meta."""
        self._do("open_", rings=rings, steps=steps, slots=slots, scalars=list(scalars))

    def step(self, count: int) -> None:
        self._do("step", count=count)

    def end(self) -> None:
        self._do("end")

    def claim_start(self, mono_ns: int, wall_ns: int) -> None:
        self._do("started", mono=mono_ns, wall=wall_ns)

    def files(self, names: Sequence[str], size: int = 0) -> None:
        """Create files that are not rings."""
        self._do("files", names=list(names), size=size)


@contextmanager
def person(folder: Path, uid: int | None = None) -> Iterator[Person]:
    """A process of this user, gone at the end."""
    owner = os.getuid() if uid is None else uid
    process = subprocess.Popen(
        [sys.executable, "-c", USER, str(owner), str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Person(process, owner)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder every user may write to."""
    place = Path(tempfile.mkdtemp(prefix="gpumon-faults-", dir="/dev/shm"))
    place.chmod(0o1777)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def require_root() -> None:
    """Only root can act for several users; CI must run as root."""
    if os.geteuid() == 0:
        return
    reason = "only root can act for several users"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def look(reader: RunReader) -> dict[str, Run]:
    """One tick: the visible runs by id."""
    now = Moment.now()
    reader.poll(now)
    runs = reader.runs(now, (), ())
    assert len({run.id for run in runs}) == len(runs), "no two runs share an id"
    return {run.id: run for run in runs}


def said(reader: RunReader) -> dict[tuple[int, str], int]:
    """(owner, reason) → how often."""
    return {(one.owner_uid, one.reason): one.count for one in reader.trouble.counts()}

"""Whether a process is alive, without a lock to ask: pid and creation time."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from monitor.runs import liveness
from sdk import ring
from tests.unit.runs.rings import Script


def header(script: Script, **words: int) -> ring.Header:
    for name, value in words.items():
        script.writer.words[getattr(ring, name)] = value
    fd = os.open(script.path, os.O_RDONLY)
    return ring.read_header(fd, os.fstat(fd).st_size)


@pytest.mark.parametrize(("shift", "alive"), [(0, True), (100, False)])
def test_a_pid_that_was_given_to_another_process_is_not_the_writer(
    tmp_path: Path, shift: int, alive: bool
) -> None:
    created = int((psutil.Process().create_time() + shift) * 1e9)
    assert liveness._same_process(header(Script(tmp_path), H_PID_STARTED=created)) is alive


def test_without_a_noted_creation_time_the_pid_must_do(tmp_path: Path) -> None:
    script = Script(tmp_path)
    assert liveness._same_process(header(script))
    assert not liveness._same_process(header(script, H_PID=2**30))


def test_a_lock_nobody_holds_means_gone(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.writer.close(ring.S_RUNNING)
    fd = os.open(script.path, os.O_RDWR)
    os.pwrite(fd, (2**30).to_bytes(8, "little"), ring.H_PID * 8)
    assert liveness.writer_pid(fd, ring.read_header(fd, os.fstat(fd).st_size), os.getuid()) is None
    os.close(fd)


def test_a_pid_is_only_believed_of_the_rings_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a ring that claims our own pid, on a file system without locks WHEN its owner is somebody else
    THEN it is not alive, and never the process that reads it."""
    script = Script(tmp_path)
    fd = os.open(script.path, os.O_RDONLY)
    found = ring.read_header(fd, os.fstat(fd).st_size)
    assert liveness.writer_pid(fd, found, os.getuid()) == os.getpid()
    monkeypatch.setattr("monitor.runs.liveness.fcntl.fcntl", _no_locks)
    assert liveness.writer_pid(fd, found, os.getuid() + 1) is None
    os.close(fd)


def _no_locks(*_: object) -> bytes:
    raise OSError("no locks here")

"""What is noted in a ring about the end of a writer that could not say so itself."""

from __future__ import annotations

import multiprocessing
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from monitor.model.run import Run
from monitor.runs.closing import mark_interrupted, mark_killed
from monitor.runs.reader import RunReader
from sdk import ring
from sdk.writer import RingWriter, note_terminated
from tests.conftest import PATIENCE
from tests.unit.runs.rings import Script

DEAD = 1 << 30
"""A pid that no process has."""


def left_open(folder: Path, **words: int) -> Script:
    """A ring of some steps whose writer is gone without a word."""
    script = Script(folder)
    script.steps([10.0] * 20)
    script.writer.words[ring.H_PID] = DEAD
    for name, value in words.items():
        script.writer.words[getattr(ring, name)] = value
    script.end(ring.S_RUNNING)
    return script


def seen(folder: Path, script: Script) -> Run:
    reader = RunReader([folder])
    reader.catch_up(script.now(1.0))
    (run,) = reader.runs(script.now(1.0), (), ())
    reader.close()
    return run


def test_a_signal_that_was_seen_has_its_name(tmp_path: Path) -> None:
    script = left_open(tmp_path)
    mark_killed(tmp_path, "run-1", DEAD, signal.SIGSEGV)
    assert (seen(tmp_path, script).state, seen(tmp_path, script).error) == ("killed", "SIGSEGV")


def test_the_signal_of_another_process_is_not_its_own(tmp_path: Path) -> None:
    script = left_open(tmp_path)
    mark_killed(tmp_path, "run-1", DEAD - 1, signal.SIGSEGV)
    assert (seen(tmp_path, script).state, seen(tmp_path, script).error) == ("killed", None)


def test_a_number_that_is_no_signal_says_nothing(tmp_path: Path) -> None:
    script = left_open(tmp_path, H_SIGNAL=1 << 60)
    assert (seen(tmp_path, script).state, seen(tmp_path, script).error) == ("killed", None)


def test_the_second_training_of_a_process_is_interrupted_with_it(tmp_path: Path) -> None:
    script = left_open(tmp_path)
    script.path.rename(tmp_path / "run-1-2.0.ring")
    mark_interrupted(tmp_path, "run-1")
    assert seen(tmp_path, script).state == "ended"


def test_who_is_ended_by_his_own_parent_was_not_killed(tmp_path: Path) -> None:
    script = left_open(tmp_path)
    note_terminated(str(tmp_path), DEAD)
    assert (seen(tmp_path, script).state, seen(tmp_path, script).error) == ("ended", None)


def test_ones_own_ring_is_not_opened_to_note_something(tmp_path: Path) -> None:
    """Closing it again would release the lock that says this process lives."""
    script = Script(tmp_path)
    note_terminated(str(tmp_path), script.writer.words[ring.H_PID])
    assert script.writer.words[ring.H_SIGNAL] == 0


def _record(folder: str, ready: Any) -> None:
    writer = RingWriter(f"{folder}/child.0.ring", {"kind": "trainer", "run": "child", "rank": 0})
    ready.set()
    time.sleep(PATIENCE)
    writer.close()


def test_a_parent_notes_that_it_ends_its_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a child of `multiprocessing` that records WHEN its parent terminates it THEN its ring says so."""
    import multiprocessing.popen_fork as popen

    from sdk.writer import watch_children

    monkeypatch.setenv("GPUMON_DIR", str(tmp_path))
    monkeypatch.setattr(popen.Popen, "terminate", popen.Popen.terminate)
    watch_children(popen)
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    child = context.Process(target=_record, args=(str(tmp_path), ready))
    child.start()
    assert ready.wait(PATIENCE)
    child.terminate()
    child.join(PATIENCE)
    with open(tmp_path / "child.0.ring", "rb") as file:
        found = ring.read_header(file.fileno(), (tmp_path / "child.0.ring").stat().st_size)
    assert (child.exitcode, found.state, found.signal) == (-signal.SIGTERM, ring.S_RUNNING, signal.SIGTERM)

"""Real writers, real kills: nothing is lost uncounted, a kill is seen at once, restarts duplicate nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from monitor.model.clock import Moment
from monitor.model.run import Run
from monitor.runs.reader import RunReader
from monitor.store.store import Store
from tests.conftest import PATIENCE, wait_for
from tests.integration.runs.processes import READER, ROOT, WRITER, finish, program


def look(reader: RunReader) -> Run | None:
    now = Moment.now()
    reader.poll(now)
    return next(iter(reader.runs(now, (), ())), None)


def test_read_plus_lost_is_written_while_the_writer_laps(tmp_path: Path) -> None:
    """GIVEN a ring of 64 slots and a writer at full speed WHEN read now and then THEN every step is either
    read or counted as lost, and what was read is intact."""
    total = 300_000
    with program(WRITER, tmp_path / "lap.0.ring", total, 0, 0) as writer:
        reader = RunReader([tmp_path])
        wait_for(lambda: look(reader), every=0.001)
        wait_for(lambda: (run := look(reader)) is None or run.steps >= total, every=0.0)
        (follower,) = reader.followers
        finish(writer)
        run = wait_for(lambda: (r := look(reader)) and r.state == "ended" and r)
    rank = run.ranks[0]
    assert reader.followers == [], "a run that is over holds no ring"
    assert rank.steps == total == follower.counters.read + rank.lost
    assert 0 < rank.lost < total and follower.counters.bad == 0
    assert rank.samples == 2 * follower.counters.read == 2 * sum(rank.histogram)
    assert sum(phase.share for phase in rank.phases) == pytest.approx(1.0)


def test_a_killed_writer_is_seen_with_the_phase_it_died_in(tmp_path: Path) -> None:
    with program(WRITER, tmp_path / "dies.0.ring", 10**6, 0.001, 1 << 20) as writer:
        reader = RunReader([tmp_path])
        run = wait_for(lambda: (r := look(reader)) and r.steps > 20 and r)
        assert run.state == "running" and reader.pids() == {writer.pid: ("dies", 0)}
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(10)
        run = wait_for(lambda: (r := look(reader)) and r.state != "running" and r, every=0.001)
    assert run.state == "killed" and run.ranks[0].live_phase == "backward" and run.ended is not None
    assert run.lost == 0 and reader.pids() == {}


def test_a_reader_killed_again_and_again_neither_loses_nor_doubles(tmp_path: Path) -> None:
    """GIVEN a daemon killed with -9 eight times WHEN it is restarted each time THEN the store has every step
    exactly once."""
    total, database = 20_000, tmp_path / "history.db"
    with program(WRITER, tmp_path / "kept.0.ring", total, 0.00005, 1 << 26) as writer:
        wait_for((tmp_path / "kept.0.ring").exists)
        for at in range(8):
            with program(READER, tmp_path, database) as reader:
                stored = at * total // 12
                wait_for(partial(_has_more, database, stored, writer), every=0.01)
                os.kill(reader.pid, signal.SIGKILL)
        assert writer.stdout is not None and writer.stdout.readline().strip() == "done"
        finish(writer)
    store = Store(database)
    last = RunReader([tmp_path], sink=store)
    run = wait_for(lambda: (r := look(last)) and r.state == "ended" and r)
    assert (run.steps, run.lost, run.ranks[0].samples) == (total, 0, 2 * total)
    assert store.steps("kept").step == list(range(1, total + 1))


def _has_more(database: Path, limit: int, writer: subprocess.Popen[str]) -> bool:
    return _stored(database) > limit or writer.poll() is not None


def _stored(database: Path) -> int:
    if not database.exists():
        return 0
    import sqlite3

    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=PATIENCE)
    try:
        return int(connection.execute("SELECT coalesce(sum(count), 0) FROM chunks").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def test_the_host_pid_of_a_writer_in_another_pid_namespace(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if (
        unshare is None
        or subprocess.run([unshare, "--pid", "--fork", "true"], capture_output=True).returncode
    ):
        pytest.skip("no permission to make a pid namespace here")
    command = [unshare, "--pid", "--fork", "--kill-child", sys.executable, "-c", WRITER]
    writer = subprocess.Popen(
        [*command, str(tmp_path / "boxed.0.ring"), "1000000", "0.001", "1048576"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        reader = RunReader([tmp_path])
        wait_for(lambda: (r := look(reader)) and r.steps)
        ((pid, _),) = reader.pids().items()
        assert reader.followers[0].header.pid != pid, "inside it has a small pid of its own"
        assert Path(f"/proc/{pid}/stat").read_text().split()[3] == str(writer.pid)
    finally:
        writer.kill()
        writer.communicate(timeout=PATIENCE)


def test_a_forked_child_does_not_keep_a_run_alive(tmp_path: Path) -> None:
    source = WRITER.replace(
        'print("done", flush=True)',
        "child = os.fork()\nif child == 0:\n    time.sleep(60)\nprint(child, flush=True)",
    )
    with program(source, tmp_path / "forks.0.ring", 50, 0, 1 << 20) as writer:
        assert writer.stdout is not None
        child = int(writer.stdout.readline())
        try:
            reader = RunReader([tmp_path])
            wait_for(lambda: (r := look(reader)) and r.steps == 50)
            os.kill(writer.pid, signal.SIGKILL)
            wait_for(lambda: (r := look(reader)) and r.state == "killed")
        finally:
            os.kill(child, signal.SIGKILL)

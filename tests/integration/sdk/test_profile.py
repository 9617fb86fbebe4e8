"""`gpumon profile` on real runs: what it writes, what it refuses, and that nothing is left behind."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.cli.main import main
from monitor.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE
from sdk import ring
from tests.conftest import PATIENCE, wait_for
from tests.integration.sdk.scripts import ROOT, environment, start, write
from tests.rings import read_ring

pytestmark = pytest.mark.slow

TRAIN = """
import os, sys, time, torch
from sdk import TrainingMonitor
from torch.profiler import ProfilerActivity, profile, schedule

control = sys.argv[1]
def word():
    return open(control).read() if os.path.exists(control) else ""

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
own = None
with TrainingMonitor("job") as m:
    while word() != "stop":
        if word() == "record" and own is None:
            own = profile(activities=[ProfilerActivity.CPU]); own.start()
        elif word() == "warm" and own is None:
            own = profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=9, active=9))
            own.start()
        elif word() == "free" and own is not None:
            own.stop(); own.export_chrome_trace(control + ".part.json"); own = None
            os.rename(control + ".part.json", control + ".own.json")  # whole from the moment it is there
        with m.phase("forward"):
            loss = model(torch.randn(4, 8)).pow(2).mean()
        with m.phase("backward"):
            optimizer.zero_grad(); loss.backward()
        with m.phase("optimizer"):
            optimizer.step()
        m.step()
        time.sleep(0.01)
"""
"""A window of a thousand steps takes ten seconds: long enough to be seen while it is taken, however busy the
machine."""


class Job:
    """A training that runs until it is told to stop."""

    def __init__(self, folder: Path, rings: Path, **env: str) -> None:
        self.folder, self.rings = folder, rings
        self.control = folder / f"control{env.get('RANK', '')}"
        script = write(folder, TRAIN)
        self.process = start(script, rings, str(self.control), env=env)

    def say(self, word: str) -> None:
        new = self.control.with_suffix(".new")
        new.write_text(word)
        new.rename(self.control)

    def wait_until_it_trains(self) -> None:
        wait_for(lambda: any(read_ring(path).header.head for path in self.rings.glob("*.ring")))

    def end(self) -> str:
        self.say("stop")
        _, errors = self.process.communicate(timeout=PATIENCE)
        return errors

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def jobs() -> Iterator[list[Job]]:
    """The newest is running; starting one takes longer than most tests."""
    made: list[Job] = []
    yield made
    for one in made:
        one.kill()


@pytest.fixture
def job(
    jobs: list[Job], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Job]:
    if not jobs or jobs[-1].process.poll() is not None:
        folder = tmp_path_factory.mktemp("job")
        (folder / "rings").mkdir()
        jobs.append(Job(folder, folder / "rings"))
        jobs[-1].wait_until_it_trains()
    monkeypatch.setenv("GPUMON_DIR", str(jobs[-1].rings))
    yield jobs[-1]


def command(job: Job, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "monitor.cli.main", "profile", "job", *words],
        env=environment(job.rings),
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def taking(job: Job) -> bool:
    return any('"taking"' in path.read_text() for path in job.rings.glob(f"*.profile/{ring.STATE}"))


def left_behind(job: Job) -> list[str]:
    return [path.name for path in job.rings.iterdir() if path.suffix != ring.SUFFIX]


def names_of(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [event["name"] for event in json.loads(data)["traceEvents"]]


def its_own(job: Job) -> Path:
    """The trace of the script's own profiler, which ends now."""
    job.say("free")
    own = job.folder / "control.own.json"
    wait_for(own.exists)
    return own.rename(job.folder / "own.json")


def test_a_window_is_taken_again_and_again(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one.json", "two.json.gz"):
        target = job.folder / name
        assert main(["profile", "job", "--steps", "3", "-o", str(target)]) == EXIT_OK
        assert "no device work" in capsys.readouterr().out
        assert target.stat().st_mode & 0o077 == 0
        steps = [one for one in names_of(target) if one.startswith("ProfilerStep#")]
        assert len(steps) == 4, "three and one that readers leave out"
        assert "aten::linear" in names_of(target) and left_behind(job) == []
    records = read_ring(next(job.rings.glob("*.ring"))).records
    assert sum(bool(one.flags & ring.F_SAMPLED) for one in records) >= 10


def test_json_and_stacks(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    target = job.folder / "stacks.json"
    assert main(["profile", "job", "--steps", "1", "--stacks", "--json", "-o", str(target)]) == EXIT_OK
    answer = json.loads(capsys.readouterr().out)
    assert answer["files"] == [str(target)] and answer["diagnosis"] is None
    assert any("train.py" in name for name in names_of(target))


@pytest.mark.parametrize("state", ["record", "warm"])
def test_a_script_that_profiles_itself_is_not_disturbed(
    job: Job, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job.say(state)
    head = read_ring(next(job.rings.glob("*.ring"))).header.head
    wait_for(lambda: read_ring(next(job.rings.glob("*.ring"))).header.head > head + 3)
    assert main(["profile", "job", "-o", str(job.folder / "t.json")]) == EXIT_FAILED
    assert "its own profiler" in capsys.readouterr().err
    assert ("aten::linear" in names_of(its_own(job))) == (state == "record"), "one that warms up has nothing"
    assert not (job.folder / "t.json").exists() and left_behind(job) == []


def test_ours_makes_way_for_the_scripts_own(job: Job) -> None:
    asked = command(job, "--steps", "1000", "-o", str(job.folder / "t.json"))
    wait_for(lambda: taking(job))
    job.say("record")
    _, errors = asked.communicate(timeout=PATIENCE)
    assert asked.returncode == EXIT_FAILED and "its own profiler" in errors
    assert "aten::linear" in names_of(its_own(job)) and left_behind(job) == []


def test_kill_9_in_a_window(job: Job) -> None:
    asked = command(job, "--steps", "1000", "-o", str(job.folder / "t.json"))
    wait_for(lambda: taking(job))
    job.process.kill()
    _, errors = asked.communicate(timeout=PATIENCE)
    assert asked.returncode == EXIT_FAILED and "ended without answering" in errors
    assert left_behind(job) == []


def test_a_run_that_ends_in_a_window_says_so(job: Job) -> None:
    asked = command(job, "--steps", "1000", "-o", str(job.folder / "t.json"))
    wait_for(lambda: taking(job))
    assert job.end() == ""
    _, errors = asked.communicate(timeout=PATIENCE)
    assert asked.returncode == EXIT_FAILED and "ended before the window" in errors
    assert left_behind(job) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_withdraws_the_request(job: Job, number: signal.Signals) -> None:
    asked = command(job, "--steps", "1000", "-o", str(job.folder / "t.json"))
    wait_for(lambda: taking(job))
    asked.send_signal(number)
    out, errors = asked.communicate(timeout=PATIENCE)
    assert asked.returncode == EXIT_INTERRUPTED and "Traceback" not in errors and out == ""
    assert left_behind(job) == []
    head = read_ring(next(job.rings.glob("*.ring"))).header.head
    wait_for(lambda: read_ring(next(job.rings.glob("*.ring"))).header.head > head + 5)
    assert main(["profile", "job", "--steps", "1", "-o", str(job.folder / "again.json")]) == EXIT_OK


def test_a_run_that_stands_still(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = read_ring(next(job.rings.glob("*.ring"))).header.pid
    os.kill(trainer, signal.SIGSTOP)
    try:
        asked = ["profile", "job", "--timeout", "1", "-o", str(job.folder / "t.json")]
        assert main(asked) == EXIT_FAILED
        assert "has not finished a step since" in capsys.readouterr().err and left_behind(job) == []
    finally:
        os.kill(trainer, signal.SIGCONT)


def test_two_at_once(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    first = command(job, "--steps", "1000", "-o", str(job.folder / "t.json"))
    wait_for(lambda: taking(job))
    assert main(["profile", "job", "-o", str(job.folder / "u.json")]) != EXIT_OK
    assert "being profiled already" in capsys.readouterr().err
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=PATIENCE)
    assert left_behind(job) == []


def test_runs_that_cannot_be_asked(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(*words: str) -> str:
        assert main(["profile", "job", *words]) == EXIT_USAGE
        return capsys.readouterr().err

    assert "has no rank 3" in asked("--rank", "3")
    assert "not a trace file name" in asked("-o", "t.txt")
    assert "there is no folder" in asked("-o", str(job.folder / "none" / "t.json"))
    (path,) = job.rings.glob("*.ring")
    with path.open("r+b", buffering=0) as file:  # as an older version leaves it
        file.seek(ring.H_REQUESTS * 8)
        file.write(bytes(8))
    assert "does not support profiling requests" in asked()
    job.end()
    assert "is over" in asked()


def test_every_rank_has_its_file(gpumon_dir: Path, tmp_path: Path) -> None:
    names: dict[str, Any] = {"GPUMON_RUN_ID": "both", "WORLD_SIZE": "2"}
    jobs = [Job(tmp_path, gpumon_dir, RANK=str(rank), **names) for rank in range(2)]
    try:
        wait_for(
            lambda: sum(bool(read_ring(path).header.head) for path in gpumon_dir.glob("*.ring")) == 2,
        )
        target = tmp_path / "t.json"
        assert main(["profile", "both", "--steps", "2", "-o", str(target)]) == EXIT_OK
        assert main(["profile", "both", "--rank", "1", "-o", str(tmp_path / "one.json")]) == EXIT_OK
        found = sorted(path.name for path in tmp_path.glob("*.json"))
        assert found == ["one.json", "t-rank0.json", "t-rank1.json"]
    finally:
        for one in jobs:
            one.kill()
    assert os.listdir(gpumon_dir) and left_behind(jobs[0]) == []

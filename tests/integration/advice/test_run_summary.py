"""`gpumon run` and `gpumon analyze` around real scripts, without a daemon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.conftest import PATIENCE, wait_for

TRAINING = """
    import sys, time, torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 10_000
        def __getitem__(self, i):
            total = 0.0
            for k in range(4000):
                total += (i * k) % 7
            return torch.full((8,), total), torch.tensor(total)

    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for step, (x, y) in enumerate(DataLoader(Rows(), batch_size=32)):
        optimizer.zero_grad()
        ((model(x).squeeze(1) - y) ** 2).mean().backward()
        optimizer.step()
        if step == int(sys.argv[1]):
            END
"""


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    rings = tmp_path / "rings"
    rings.mkdir()
    changes = {"GPUMON_DIR": str(rings), "XDG_STATE_HOME": str(tmp_path / "state"), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **changes}


def script(folder: Path, end: str) -> Path:
    path = folder / "train.py"
    path.write_text(textwrap.dedent(TRAINING).replace("END", end))
    return path


def gpumon(*words: str) -> list[str]:
    return [sys.executable, "-m", "monitor.cli.main", *words]


def run(
    folder: Path, env: dict[str, str], *command: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    target = folder / "report.json"
    done = subprocess.run(
        gpumon("run", "--json", str(target), "--", *command),
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done, json.loads(target.read_text())


@pytest.mark.slow
def test_forty_steps_are_enough_for_a_verdict_that_names_the_line(
    tmp_path: Path, surroundings: dict[str, str]
) -> None:
    done, report = run(tmp_path, surroundings, warm.python(), str(script(tmp_path, "break")), "60")
    assert done.returncode == 0
    first = report["findings"][0]
    assert first["id"] == "input.slow_getitem" and first["run"] == report["run"]
    assert first["speedup"]["low"] > 1.0 and "train.py" in first["evidence"]["hot_line"]
    assert "Where the time went" in done.stderr and "input.slow_getitem" in done.stderr and not done.stdout
    assert abs(sum(phase["share"] for phase in report["phases"]) - 1.0) < 1e-6


@pytest.mark.slow
def test_the_line_named_is_the_loops_or_none(tmp_path: Path, surroundings: dict[str, str]) -> None:
    """Samples must not gather where the code happens to release the interpreter lock: `torch.full`."""
    path = script(tmp_path, "break")
    lines = path.read_text().splitlines()
    loop = [at for at, line in enumerate(lines, 1) if "total +=" in line or "for k in" in line]
    named = []
    for _ in range(4):
        _, report = run(tmp_path, surroundings, warm.python(), str(path), "60")
        named += [
            str(one["evidence"].get("hot_line"))
            for one in report["findings"]
            if "hot_line" in one["evidence"]
        ]
    assert named and set(named) <= {"train.py", *(f"train.py:{at}" for at in loop)}
    assert {f"train.py:{at}" for at in loop} & set(named), "four runs of a plain loop show its line"


@pytest.mark.slow
def test_a_crash_keeps_its_exit_code_and_gets_a_report(tmp_path: Path, surroundings: dict[str, str]) -> None:
    path = script(tmp_path, "raise ValueError('bad batch')")
    done, report = run(tmp_path, surroundings, warm.python(), str(path), "40")
    assert done.returncode == 1 and "bad batch" in done.stderr
    assert report["state"] == "failed" and report["steps"] >= 39
    assert "trend.ended_abnormally" in [finding["id"] for finding in report["findings"]]


@pytest.mark.slow
def test_a_kill_keeps_the_steps_that_were_made(tmp_path: Path, surroundings: dict[str, str]) -> None:
    path = script(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    done, report = run(tmp_path, surroundings, warm.python(), str(path), "40")
    assert done.returncode == 128 + signal.SIGKILL
    assert report["state"] == "killed" and report["steps"] >= 39


def test_a_command_that_never_trains_is_told_so(tmp_path: Path, surroundings: dict[str, str]) -> None:
    done, report = run(tmp_path, surroundings, sys.executable, "-c", "print('hello')")
    assert done.returncode == 0 and done.stdout == "hello\n"
    assert "No training was seen" in done.stderr and report["findings"] == []


@pytest.mark.slow
def test_analyze_ends_the_script_after_the_iterations(tmp_path: Path, surroundings: dict[str, str]) -> None:
    path = script(tmp_path, "break")
    command = gpumon("analyze", "--json", "--iterations", "50", "--", warm.python(), str(path), "100000")
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=PATIENCE)
    report = json.loads(done.stdout)
    assert done.returncode == 0 and 50 <= report["steps"] <= 70
    # Fifty steps are few samples: which of the two remedies comes first may depend on a single one.
    assert report["findings"][0]["id"] in ("input.slow_getitem", "input.no_workers")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_reaches_the_script_and_is_no_failure(
    tmp_path: Path, surroundings: dict[str, str], number: signal.Signals
) -> None:
    target = tmp_path / "report.json"
    command = gpumon(
        "run", "--json", str(target), "--", sys.executable, str(script(tmp_path, "break")), "100000"
    )
    child = subprocess.Popen(
        command, env=surroundings, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    rings = Path(surroundings["GPUMON_DIR"])
    wait_for(lambda: list(rings.glob("*.ring")))
    child.send_signal(number)
    _, words = child.communicate(timeout=PATIENCE)
    report = json.loads(target.read_text())
    assert report["run"] and "gpumon" in words
    assert child.returncode == 128 + number, "as without gpumon"
    assert report["state"] == "ended", "somebody's wish is no failure"
    assert "trend.ended_abnormally" not in [finding["id"] for finding in report["findings"]]

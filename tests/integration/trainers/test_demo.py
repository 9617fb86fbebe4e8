"""`gpumon demo`: the whole story in a pipe, two of its scenarios, and Ctrl-C in the middle of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import PATIENCE, wait_for

GPUMON = [sys.executable, "-m", "monitor.cli.main"]
DEMO = [*GPUMON, "demo", "--quick", "--source=simulated"]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_the_demo_names_the_cause_and_shows_what_it_gained(tmp_path: Path) -> None:
    text = told([*DEMO, f"--output={tmp_path / 'demo.html'}"], tmp_path)
    assert "simulated" in text and "\x1b" not in text
    assert "gpumon says: input." in text
    for line in ("one remedy, predicted", "one remedy, realised", "everything, realised"):
        assert re.search(rf"{line} +×[1-9]", text), text
    assert all(len(line) <= 100 for line in text.splitlines() if str(tmp_path) not in line)
    for name in ("demo.html", "demo-compare.html"):
        assert "<html" in (tmp_path / name).read_text(encoding="utf-8") and str(tmp_path / name) in text
    assert list(tmp_path.glob("gpumon-demo-*")) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "rule"), [("hung-rank", "trend.hung"), ("throttled-gpu", "device.thermal_")]
)
def test_a_scenario_is_named(scenario: str, rule: str, tmp_path: Path) -> None:
    text = told([*GPUMON, "demo", f"--scenario={scenario}"], tmp_path)
    assert f"What gpumon says: {rule}" in text
    assert list(tmp_path.glob("gpumon-demo-*")) == []


def told(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        DEMO,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    parent = psutil.Process(demo.pid)

    def training() -> list[psutil.Process]:
        children = parent.children(recursive=True)
        return children if any("-m trainers tcn" in " ".join(child.cmdline()) for child in children) else []

    children = wait_for(training)
    demo.send_signal(signal.SIGINT)
    _, err = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 130
    assert b"Traceback" not in err and b"stopped" in err
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert alive == []
    assert list(tmp_path.glob("gpumon-demo-*")) == []

"""`gpumon demo`: the whole story headless, and Ctrl-C in the middle of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import PATIENCE, wait_for

DEMO = [sys.executable, "-m", "monitor.cli.main", "demo", "--quick", "--source=simulated"]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_the_demo_names_the_cause_and_shows_what_it_gained(tmp_path: Path) -> None:
    done = subprocess.run(
        DEMO,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SIMULATED" in done.stdout
    assert "input." in done.stdout and "predicted: ×" in done.stdout
    assert "the named remedy alone: realised ×" in done.stdout
    assert "the best rung: realised ×" in done.stdout
    assert list(tmp_path.glob("gpumon-demo-*")) == []


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
    assert b"Traceback" not in err
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert alive == []
    assert list(tmp_path.glob("gpumon-demo-*")) == []

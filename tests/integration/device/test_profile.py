"""`gpumon profile` of a run on the stand-in: the trace has the device's work, the diagnosis is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.cli.main import main
from monitor.model.errors import EXIT_OK
from tests import device, warm
from tests.conftest import PATIENCE, wait_for
from tests.device import Speeds
from tests.rings import trainer_rings

LAUNCH_BOUND = """
import os, sys, torch
x = torch.zeros(16, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.01)
while not os.path.exists(sys.argv[1]):
    loss = x
    for _ in range(100):
        loss = loss + 1
    optimizer.zero_grad(); loss.sum().backward(); optimizer.step()
"""


def test_a_launch_bound_run_is_named(
    gpumon_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, stop = tmp_path / "train.py", tmp_path / "stop"
    script.write_text(LAUNCH_BOUND)
    command = [sys.executable, "-m", "monitor.cli.main", "run", "--no-summary", "--"]
    env = {**os.environ, "OMP_NUM_THREADS": "1", **device.environment(Speeds())}
    job = subprocess.Popen([*command, warm.python_with_device(), str(script), str(stop)], env=env)
    try:
        wait_for(lambda: any(ring.header.head > 3 for ring in trainer_rings(gpumon_dir)))
        target = tmp_path / "trace.json.gz"
        assert main(["profile", "last", "--steps", "4", "--json", "-o", str(target)]) == EXIT_OK
    finally:
        stop.touch()
        job.wait(timeout=PATIENCE)
    answer = json.loads(capsys.readouterr().out)["diagnosis"]
    (report,) = answer["reports"]
    assert report["steps"]["in_window"] == 4 and report["kernels"] and report["host_recorded"]
    assert report["devices"][0]["launch_bound"] is True
    assert "trace.launch_bound" in [finding["id"] for finding in answer["findings"]]
    assert job.returncode == 0

"""A trial of a script with a monitor in its own code ends after its steps, and its run is no crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.experiments.measure import measure
from sdk import ring
from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[3]
pytest.importorskip("torch")
pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from sdk import TrainingMonitor

def train(batches, monitor=None):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if monitor is not None:
            monitor.step()

batches = [torch.ones(2, 4)] * 10_000
with TrainingMonitor("mine") as monitor:
    train(batches[:7])
    train(monitor.loader(batches), monitor)
"""


def test_it_ends_after_its_steps(tmp_path: Path) -> None:
    (tmp_path / "rings").mkdir(mode=0o700)
    (tmp_path / "train.py").write_text(SCRIPT)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "sdk" / "autostart"), str(ROOT)]),
        "GPUMON_AUTO": "1",
        "GPUMON_RUN_ID": "own",
        "GPUMON_DIR": str(tmp_path / "rings"),
        "GPUMON_TRIAL": json.dumps({"steps": 40, "folder": str(tmp_path)}),
    }
    words = [sys.executable, "train.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    [told] = [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]
    assert told["steps"] == len(told["losses"]) == 40
    measured = measure(tmp_path / "rings", "own")
    assert measured is not None and measured.samples == 2 * measured.steps
    assert {_state(path) for path in (tmp_path / "rings").glob("own*.0.ring")} == {ring.S_ENDED}


def _state(path: Path) -> int:
    fd = os.open(path, os.O_RDONLY)
    try:
        return ring.read_header(fd, os.fstat(fd).st_size).state
    finally:
        os.close(fd)

"""`TrainingMonitor.auto(explore=True)`, and the live search of `gpumon boost`, in real trainings."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[3]
torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

SCRIPT = """
import gc, json, os, sys
if "explore" in sys.argv:
    from sdk import TrainingMonitor
    monitor = TrainingMonitor.auto(explore=True)
import torch
if "alone" in sys.argv:  # one core: nothing to try with threads, whose number is a matter of rounding
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
torch.manual_seed(0)
torch.set_num_threads(1)
torch.autograd.set_detect_anomaly("anomaly" in sys.argv)
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(8)), torch.nn.Linear(8, 1))
optimizer = torch.optim.{optimizer}(model.parameters(), lr=1e-3)
losses = []
for step in range(2000):
    loss = model(torch.full((4, 8), step % 5 / 5)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect(0)
    losses.append(loss.item())
explored = monitor.config.get("explored") if "explore" in sys.argv else None
print(json.dumps([losses, explored]))
"""


def losses_of(folder: Path, optimizer: str, *words: str) -> Any:
    folder.mkdir()
    (folder / "rings").mkdir(mode=0o700)
    (folder / "train.py").write_text(SCRIPT.replace("{optimizer}", optimizer))
    own = {"GPUMON_DIR": str(folder / "rings"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [warm.python(), "train.py", *words], cwd=folder, env=os.environ | own,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


def test_identical_settings_change_no_loss(tmp_path: Path) -> None:
    """Rprop has no fused form, and there is one core: nothing is left that would round otherwise."""
    before, _ = losses_of(tmp_path / "before", "Rprop", "anomaly")
    after, found = losses_of(tmp_path / "after", "Rprop", "anomaly", "explore", "alone")
    assert after == before
    assert set(found["stays"]) <= {"anomaly=off", "gc.collect=off", "gc.freeze=on"}


def test_other_rounding_stays_within_rounding(tmp_path: Path) -> None:
    before, _ = losses_of(tmp_path / "before", "Adam")
    after, _ = losses_of(tmp_path / "after", "Adam", "explore")
    assert after[:200] == pytest.approx(before[:200], rel=1e-3)

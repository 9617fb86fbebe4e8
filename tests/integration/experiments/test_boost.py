"""`gpumon boost`: the real run with verified settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.experiments.arm import Arm
from monitor.experiments.experiment import Result
from monitor.experiments.losses import Agreement
from monitor.experiments.memory import remember
from monitor.experiments.spread import Ratio
from tests import warm
from tests.conftest import PATIENCE
from tests.unit.sdk.knobs_scripts import FINITE

ROOT = Path(__file__).parents[3]
FIRST_STEP = """
import torch
torch.set_num_threads(5)
torch.autograd.set_detect_anomaly(True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(2, 4)).pow(2).mean()
    print(torch.get_num_threads(), optimizer.param_groups[0]["fused"], torch.is_anomaly_enabled())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rings").mkdir(mode=0o700)
    (tmp_path / "train.py").write_text(FINITE)
    monkeypatch.chdir(tmp_path)
    for name, value in (("GPUMON_DIR", "rings"), ("XDG_STATE_HOME", "state")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def words() -> list[str]:
    return [warm.python(), "train.py"]


def boost() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "monitor.cli.main", "boost", "--", *words()]
    return subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.slow
def test_nothing_verified_is_looked_for_while_it_runs(folder: Path) -> None:
    pytest.importorskip("torch")
    done = boost()
    assert done.returncode == 0 and done.stdout == "the end was reached\n", done.stderr
    assert "nothing has been verified for this command here" in done.stderr
    assert "too few steps were made to try anything" in done.stderr


@pytest.mark.slow
def test_the_script_runs_to_its_end_with_the_settings(folder: Path) -> None:
    pytest.importorskip("torch")
    arm = Arm({"loader.num_workers": "2", "gc.collect": "off"})
    remember(words(), Result(arm, 4, Ratio(2.0, 1.9, 2.1), "", Agreement("equal"), "identical"), 0.5)
    done = boost()
    assert done.returncode == 0 and done.stdout == "the end was reached\n", done.stderr
    assert "loader.num_workers=2 gc.collect=off: ×2.0 (1.9–2.1) in trials of" in done.stderr
    assert "loader.num_workers was not applied: no DataLoader was iterated" in done.stderr
    assert "500 ms in the trials as it was" in done.stderr and "too few steps" not in done.stderr


@pytest.mark.slow
def test_verified_settings_are_in_force_before_the_first_step(folder: Path) -> None:
    """A thread pool that was made once stays, and the loss of the first step is that of the setting."""
    pytest.importorskip("torch")
    (folder / "train.py").write_text(FIRST_STEP)
    arm = Arm({"threads.torch": "3", "optimizer.fused": "on", "anomaly": "off"})
    remember(words(), Result(arm, 4, Ratio(2.0, 1.9, 2.1), "", Agreement("rounding"), "rounding"), 0.5)
    done = boost()
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 True False\n" * 3 and "was not applied" not in done.stderr

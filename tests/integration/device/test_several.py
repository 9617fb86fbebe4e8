"""A process with several devices: each is timed by itself and named, against the stand-in's account of it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import device, warm
from tests.integration.device.test_lane import ATTEMPTS, POINTS, SCRIPTS, matrices, stopped

SPEEDS = matrices(2000)
ON_THE_SECOND = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).to("cuda:1")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
held = torch.zeros(8, device="cuda:0")  # memory, and no work
inputs = torch.randn(16, 32, device="cuda:1")
for _step in range(150):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
"""


@dataclass(frozen=True)
class Seen:
    """By device: the truth with what a crowded machine may add, and what the report says."""

    truth: dict[str, tuple[float, float]]
    ours: dict[str, float | None]
    report: dict[str, Any]
    text: str

    @property
    def is_true(self) -> bool:
        return self.truth.keys() == self.ours.keys() and all(
            (idle := self.ours[name]) is not None and abs(idle - truth) <= POINTS + allowed
            for name, (truth, allowed) in self.truth.items()
        )


def watch(script: Path, folder: Path, **environment: str) -> Seen:
    path = folder / "report.json"
    command = [
        sys.executable,
        "-m",
        "monitor.cli.main",
        "run",
        "--json",
        str(path),
        "--",
        warm.python_with_device(),
    ]
    result = device.run_command([*command, str(script)], SPEEDS, out=folder, env=environment)
    assert result.returncode == 0, result.stderr
    report = json.loads(path.read_text())
    (rank,) = report["ranks"]
    first = report["config"]["device"]
    ours = {first: report["starved_ratio"]}
    ours |= {one["name"]: one["idle_ratio"] for one in rank["other_devices"] if one["kernels"] != 0}
    return Seen(_truth(result.truth), ours, report, result.stdout + result.stderr)


def _truth(truth: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Idle share of each device, and how much of it single steps explain."""
    found = {}
    for one in truth["devices"]:
        steady = one["steady"]
        if steady["kernels"] > len(one["steps"]):
            idle = sum(steady["idle"].values()) / steady["seconds"]
            found[f"cuda:{one['index']}"] = (idle, stopped(one["steps"]) / steady["seconds"])
    return found


@pytest.mark.parametrize("name", ["two_halves", "two_models", "two_replicas"])
def test_each_device_is_timed_by_itself(name: str, tmp_path: Path, gpumon_dir: Path) -> None:
    tries = []
    for attempt in range(ATTEMPTS):
        (folder := tmp_path / str(attempt)).mkdir()
        tries.append(watch(SCRIPTS / f"{name}.py", folder))
        if tries[-1].is_true:
            break
    seen = tries[-1]
    assert seen.is_true, "\n".join(f"{one.truth} {one.ours}" for one in tries)
    assert "cuda:0 idle " in seen.text and "cuda:1 idle " in seen.text
    assert all(finding.get("speedup") is None for finding in seen.report["findings"])


def test_a_second_device_alone_is_the_one_that_is_timed(tmp_path: Path, gpumon_dir: Path) -> None:
    """`cuda:1` without `set_device`, and a first device that only holds memory."""
    (script := tmp_path / "on_the_second.py").write_text(ON_THE_SECOND)
    tries = []
    for attempt in range(ATTEMPTS):
        (folder := tmp_path / str(attempt)).mkdir()
        tries.append(watch(script, folder))
        if tries[-1].is_true:
            break
    assert tries[-1].is_true and list(tries[-1].ours) == ["cuda:1"], tries
    assert "idle unknown" not in tries[-1].text


def test_without_a_window_the_other_devices_are_named_as_unknown(tmp_path: Path, gpumon_dir: Path) -> None:
    seen = watch(SCRIPTS / "two_halves.py", tmp_path, GPUMON_DEVICE_WINDOW="0")
    assert seen.ours == {"cuda:0": None, "cuda:1": None}
    assert "cuda:0 idle unknown, cuda:1 idle unknown" in seen.text

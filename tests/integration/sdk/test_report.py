"""The closing report of `gpumon run`, from real processes: every training, both rates, what was not seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.conftest import PATIENCE
from tests.integration.sdk.scripts import AUTO, HEAD, environment, write

FOLDS = (
    HEAD
    + """
for seed in range(3):
    torch.manual_seed(seed)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in DataLoader(Data(96), batch_size=8):
        step(model, optimizer, x, y)
"""
)
ACCUMULATED = (
    HEAD
    + """
model, optimizer = net()
for number, (x, y) in enumerate(DataLoader(Data(320), batch_size=4)):
    nn.functional.cross_entropy(model(x), y).backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
"""
)

EMPTY = """
def empty():
    folder = os.environ["GPUMON_DIR"]
    for name in os.listdir(folder):
        if name.endswith(".ring"):
            os.remove(os.path.join(folder, name))
main()
"""


def reported(directory: Path, folder: Path, *command: str) -> tuple[str, dict[str, Any]]:
    """(what `gpumon run` says, the same as JSON)."""
    target = folder / "report.json"
    front = [sys.executable, "-m", "monitor.cli.main", "run", "--json", str(target), "--"]
    env = environment(directory, XDG_STATE_HOME=str(folder), XDG_CONFIG_HOME=str(folder))
    done = subprocess.run(
        [*front, *command], env=env, cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stderr, json.loads(target.read_text())


@pytest.mark.slow
def test_every_training_of_a_command_is_reported(gpumon_dir: Path, tmp_path: Path) -> None:
    text, report = reported(gpumon_dir, tmp_path, warm.python(), str(write(tmp_path, FOLDS)))
    heads = [line for line in text.splitlines() if line.startswith("── gpumon")]
    assert len(heads) == 3 and all("12 steps" in line for line in heads), text
    first, *others = sorted([report["run"], *(one["run"] for one in report["other_trainings"])])
    assert others == [f"{first}-2", f"{first}-3"]
    assert [one["steps"] for one in report["other_trainings"]] == [12, 12]


@pytest.mark.slow
def test_accumulated_gradients_have_both_rates(gpumon_dir: Path, tmp_path: Path) -> None:
    text, report = reported(gpumon_dir, tmp_path, warm.python(), str(write(tmp_path, ACCUMULATED)))
    assert "20 steps" in text and "micro-batches/s" in text, text
    assert report["micro_batches"] == 4
    both = report["iterations_per_second"], report["micro_batches_per_second"]
    assert both[1] == pytest.approx(4 * both[0], rel=0.01)


@pytest.mark.slow
def test_a_python_that_ignores_its_environment_was_not_seen(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(tmp_path, AUTO + "\nmain()\n")
    text, report = reported(gpumon_dir, tmp_path, sys.executable, "-I", str(script))
    assert "python -I" in " ".join(text.split()) and "TrainingMonitor.auto()" in text
    assert (report["state"], report["seen"]) == ("not_training", "nothing")


@pytest.mark.slow
def test_a_record_that_is_gone_is_not_called_no_training(gpumon_dir: Path, tmp_path: Path) -> None:
    """GIVEN a folder of rings that is emptied in the first step THEN nobody says that nothing was trained."""
    emptied = AUTO.replace("    return loss", "    empty()\n    return loss") + EMPTY
    text, report = reported(gpumon_dir, tmp_path, warm.python(), str(write(tmp_path, emptied)))
    assert "Nothing is left of what was recorded" in text, text
    assert report["seen"] == "training"


@pytest.mark.slow
def test_a_training_whose_ring_could_not_be_made_is_not_called_no_training(tmp_path: Path) -> None:
    """GIVEN a file where the folder of rings should be THEN the report says that there was a training."""
    (tmp_path / "file").touch()
    text, report = reported(
        tmp_path / "file", tmp_path, warm.python(), str(write(tmp_path, AUTO + "\nmain()\n"))
    )
    assert "Nothing was recorded: there was a training" in " ".join(text.split()), text
    assert "no backward pass" not in text
    assert (report["state"], report["seen"]) == ("not_training", "not_recorded")


@pytest.mark.parametrize(
    ("command", "seen", "words"),
    [
        (("true",), "nothing", "no process was a Python"),
        ((sys.executable, "-c", "pass"), "python", "nothing imported torch"),
        (
            (sys.executable, "-c", "import os; os.environ.clear(); import torch"),
            "no_environment",
            "took gpumon's variables out of its environment",
        ),
    ],
)
def test_a_command_that_does_not_train(
    gpumon_dir: Path, tmp_path: Path, command: tuple[str, ...], seen: str, words: str
) -> None:
    text, report = reported(gpumon_dir, tmp_path, *command)
    assert words in " ".join(text.split())
    assert report["seen"] == seen

"""`gpumon` beside a project that has packages with our names: real processes in a stranger's folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[3]
COPIES = """
import sys
copies = {name.partition('.')[0] for name in sys.modules if name.endswith('.loop.monitor')}
print(sorted(copies), TrainingMonitor.__module__)
"""
SPAWNED = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from gpumon import TrainingMonitor

if __name__ == "__main__":
    loader = DataLoader(TensorDataset(torch.ones(8, 2)), num_workers=1, multiprocessing_context="spawn")
    with TrainingMonitor("spawned") as m:
        for batch in m.loader(loader):
            m.step()
    print(m.get_summary()["steps"])
"""


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A project with its own `sdk`, `monitor` and `trainers`."""
    for name in ("sdk", "monitor", "trainers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWNER = 'the stranger, {name}'\n")
    return tmp_path


def python(folder: Path, *words: str, **extra: str) -> str:
    """What a Python started in `folder` prints; ours comes after the folder on its path."""
    path = os.pathsep.join([*filter(None, [extra.pop("first", "")]), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "GPUMON_DIR": str(folder / "rings"), **extra}
    (folder / "rings").mkdir(exist_ok=True)
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_strangers_sdk_stays_theirs(stranger: Path) -> None:
    code = f"import sdk\nfrom gpumon import TrainingMonitor\nprint(sdk.OWNER){COPIES}"
    assert python(stranger, "-c", code).splitlines() == [
        "the stranger, sdk",
        "['_gpumon_sdk'] _gpumon_sdk.loop.monitor",
    ]


def test_where_sdk_is_ours_there_is_one_copy(tmp_path: Path) -> None:
    for first in ("gpumon", "sdk"):
        code = f"import {first}\nfrom gpumon import TrainingMonitor\nfrom sdk import TrainingMonitor{COPIES}"
        assert python(tmp_path, "-c", code) == "['sdk'] sdk.loop.monitor"


def test_under_gpumon_run_the_copy_is_the_one_it_loads(stranger: Path) -> None:
    code = f"from gpumon import TrainingMonitor\nimport torch{COPIES}"
    found = python(stranger, "-c", code, first=str(ROOT / "sdk" / "autostart"), GPUMON_AUTO="1")
    assert found == "['_gpumon_sdk'] _gpumon_sdk.loop.monitor"


def test_callbacks_come_with_it(stranger: Path) -> None:
    code = """
from gpumon.callbacks.hf import GpumonCallback as A
from gpumon.callbacks.lightning import GpumonCallback as B
print(A.__module__, B.__module__)
"""
    assert python(stranger, "-c", code) == "_gpumon_sdk.callbacks.hf _gpumon_sdk.callbacks.lightning"


def test_spawned_workers_find_the_private_copy(stranger: Path) -> None:
    """They are sent an object of ours by its module's name."""
    (stranger / "train.py").write_text(SPAWNED)
    assert python(stranger, "train.py") == "8"
    assert list((stranger / "rings").glob("*.w0.*.ring"))


def test_the_names_are_those_of_the_sdk(tmp_path: Path) -> None:
    assert python(tmp_path, "-c", "import gpumon, sdk; print(gpumon.__all__ == sdk.__all__)") == "True"


def test_the_command_is_ours_whatever_is_on_the_path(stranger: Path) -> None:
    code = "import sys; sys.argv = ['gpumon', '--version']; from gpumon.command import main; main()"
    assert python(stranger, "-c", code, first=str(stranger)).startswith("gpumon ")


def test_the_doctor_sees_the_clash(stranger: Path) -> None:
    words = ["-P", "-m", "monitor.cli.main", "doctor", "--only", "names", "--json"]
    found = json.loads(python(stranger, *words))["checks"][0]
    assert found["status"] == "WARN"
    assert set(found["facts"]) == {"sdk", "monitor", "trainers"}
    assert "from gpumon import TrainingMonitor" in found["remedy"]


def test_the_doctor_is_content_elsewhere(tmp_path: Path) -> None:
    words = ["-P", "-m", "monitor.cli.main", "doctor", "--only", "names", "--json"]
    assert json.loads(python(tmp_path, *words))["checks"][0]["status"] == "PASS"

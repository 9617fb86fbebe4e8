"""The SDK with its Python core, as on a machine without a C compiler: same tests, same runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sdk import core
from tests import warm
from tests.conftest import PATIENCE, require_program
from tests.integration.sdk.scripts import HEAD, finish, gpumon, write
from tests.rings import trainer_rings

ROOT = Path(__file__).parents[3]
TESTS = ("device", *(f"test_{name}.py" for name in (
    "monitor", "auto", "auto_steps", "auto_trainings", "auto_phases", "watched_models", "statistics",
    "ring_growth", "callbacks",
)))  # fmt: skip
AUTO = (
    HEAD
    + """
import sdk.core
model, optimizer = net()
for _ in range(2):
    for x, y in DataLoader(Data(), batch_size=8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
print("native" if sdk.core.NATIVE else "plain")
"""
)


def test_the_c_core_is_what_runs_here() -> None:
    """If there is a compiler, the build must have used it: everything else here would pass without."""
    require_program("cc")
    assert core.NATIVE, "build it: pip install -e ."


@pytest.mark.slow
def test_the_sdks_tests_pass_on_the_python_core() -> None:
    command = [warm.python(), "-m", "pytest", "-q", "-x", "-m", "not slow"]
    command += [f"tests/unit/sdk/{name}" for name in TESTS]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "GPUMON_PURE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_both_record_the_same_run(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(tmp_path, AUTO)
    for pure, said in (("", "native"), ("1", "plain")):
        done = finish(script, gpumon_dir, front=gpumon(), env={"GPUMON_PURE": pure})
        assert (done.stdout.strip(), done.returncode) == (said, 0), done.stderr
    native, plain = (
        [(one.flags & ~1, one.epoch, one.samples) for one in found.records]
        for found in sorted(trainer_rings(gpumon_dir), key=lambda found: found.header.started_wall_ns)
    )
    assert native == plain and len(native) == 16

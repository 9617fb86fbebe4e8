"""`gpumon run` and the stand-in in one process: both wait for torch, and both get it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import device, warm
from tests.device import Speeds

SCRIPT = Path(device.__file__).parent / "scripts" / "data_bound.py"
LOOKS_FIRST = f"""
import importlib.util, runpy

assert importlib.util.find_spec("torch")
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
"""


@pytest.mark.parametrize("looks_first", [False, True])
def test_a_watched_run_has_the_device(gpumon_dir: Path, tmp_path: Path, looks_first: bool) -> None:
    """Even if a library checks whether torch exists, as transformers does, before anybody imports it."""
    report, script = tmp_path / "report.json", tmp_path / "looks_first.py"
    script.write_text(LOOKS_FIRST)
    command = [sys.executable, "-m", "monitor.cli.main", "run", "--json", str(report), "--"]
    started = [warm.python_with_device(), str(script if looks_first else SCRIPT)]
    result = device.run_command([*command, *started], Speeds(kernels_us={"mm": 500}))
    assert result.returncode == 0, result.stderr
    assert result.truth["devices"][0]["steady"]["idle"]["data"] > 0
    assert json.loads(report.read_text())["steps"] > 0

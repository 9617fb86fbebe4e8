"""What importing the SDK loads. What it costs is measured by `python -m tests.benchmarks.sdk`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY = {
    "asyncio",
    "ast",
    "ctypes",
    "dataclasses",
    "importlib.abc",
    "inspect",
    "json.tool",
    "multiprocessing",
}


def test_import_is_standard_library_only() -> None:
    """No site-packages at all (-S), and no heavy module of the standard library either."""
    code = "import sys; from sdk import TrainingMonitor; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    loaded = set(done.stdout.split())
    assert "sdk.loop.monitor" in loaded
    assert not loaded & (HEAVY | {"torch", "numpy", "msgspec"})

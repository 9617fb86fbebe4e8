"""A `cuda` device for tests: a CPU torch runs unchanged scripts on a modelled, asynchronous stand-in.

    result = device.run(script, ["--epochs", "2"], Speeds(kernels_us={"addmm": 500}))
    result.truth["devices"][0]["steady"]  # busy seconds, and idle seconds by cause
    result.trace                          # the same as a trace file

It is not a GPU, and none of its figures are those of a GPU. README.md says what is modelled and what is not.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE
from tests.device.library import Unavailable, build
from tests.device.speeds import Speeds

__all__ = [
    "Result",
    "Speeds",
    "Unavailable",
    "build",
    "environment",
    "require",
    "run",
    "run_code",
    "run_command",
]

RUNTIME = Path(__file__).parent / "runtime"


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run; `truth` and `trace` are those of the process with the most work, None without any."""

    returncode: int
    stdout: str
    stderr: str
    wall: float
    truths: list[dict[str, Any]]
    folder: Path

    @property
    def truth(self) -> dict[str, Any]:
        assert self.truths, f"no truth was written: {self.stderr[-2000:]}"
        return self.truths[0]

    @property
    def trace(self) -> Path:
        return self.folder / f"trace-{self.truth['pid']}.json"


def require() -> None:
    """For a test that needs the device: skip with the reason if it is not available, fail under CI."""
    import pytest

    try:
        build()
    except Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(str(reason))
        pytest.skip(str(reason))


def environment(speeds: Speeds | None = None, out: Path | None = None) -> dict[str, str]:
    """The environment a child process needs to have the device; raises Unavailable."""
    inherited = os.environ.get("PYTHONPATH")
    made = {
        "GPUMON_STANDIN_LIBRARY": str(build()),
        "GPUMON_STANDIN_SPEEDS": (speeds or Speeds()).to_json(),
        "PYTHONPATH": os.pathsep.join([str(RUNTIME), *([inherited] if inherited else [])]),
    }
    return made | ({"GPUMON_STANDIN_OUT": str(out)} if out else {})


def run(
    script: Path | str,
    args: Sequence[str] = (),
    speeds: Speeds | None = None,
    *,
    env: Mapping[str, str] | None = None,
    out: Path | None = None,
    timeout: float = PATIENCE,
) -> Result:
    """Run a script on the device and wait for it. Truth and trace go to `out`, or to a folder that lasts as
    long as this process."""
    return run_command([_python(), str(script), *args], speeds, env=env, out=out, timeout=timeout)


def run_code(code: str, speeds: Speeds | None = None) -> Result:
    """Like `run`, for a few lines of Python."""
    return run_command([_python(), "-c", textwrap.dedent(code)], speeds)


def run_command(
    command: Sequence[str],
    speeds: Speeds | None = None,
    *,
    env: Mapping[str, str] | None = None,
    out: Path | None = None,
    timeout: float = PATIENCE,
) -> Result:
    """Like `run`, for any command whose Python processes should have the device."""
    folder = out or _temporary_folder()
    full = {**os.environ, "OMP_NUM_THREADS": "1", **environment(speeds, folder), **(env or {})}
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=full, timeout=timeout, check=False)
    wall = time.monotonic() - begin
    return Result(done.returncode, done.stdout, done.stderr, wall, _truths(folder), folder)


def _python() -> str:
    from tests import warm

    return warm.python_with_device()


def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gpumon-device-run-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _truths(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in folder.glob("truth-*.json")]
    return sorted(found, key=lambda truth: -sum(device["whole"]["kernels"] for device in truth["devices"]))

"""Shared test helpers: required programs, waiting with a deadline, a private gpumon directory."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell's background job ignores Ctrl-C, and so would every child the tests want to interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

T = TypeVar("T")


def require_program(name: str) -> str:
    """Path of a program the test needs; without it the test skips, under CI it fails."""
    found = shutil.which(name)
    if found:
        return found
    reason = f"{name} is not installed (Debian: apt-get install {name})"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def wait_for(what: Callable[[], T], *, seconds: float = 20.0, every: float = 0.05) -> T:
    """Call `what` until it gives something true; fail with its last answer when time is up."""
    deadline = time.monotonic() + seconds
    while True:
        answer = what()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"still {answer!r} after {seconds:.0f} s")
        time.sleep(every)


@pytest.fixture
def gpumon_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A ring directory of the test's own, set as GPUMON_DIR."""
    directory = tmp_path / "rings"
    directory.mkdir()
    monkeypatch.setenv("GPUMON_DIR", str(directory))
    yield directory

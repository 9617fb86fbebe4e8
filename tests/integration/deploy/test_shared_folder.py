"""The folder of the service, with real users: everybody writes, only the daemon reads and removes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from monitor.client import Client
from monitor.errors import UserError
from tests.conftest import wait_for
from tests.integration.daemon.process import clean_environment

ROOT = Path(__file__).resolve().parents[3]
DAEMON, TRAINER, OTHER = 61001, 61002, 61003
TRAIN = """
import time
from sdk import TrainingMonitor
with TrainingMonitor("shared", batch_size=8) as monitor:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.01)
        monitor.step(loss=1.0)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for several users"),
]


def as_user(user: int, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """This Python (or the system's, with our packages) as another user."""
    command = [python() or "", *arguments]
    return subprocess.Popen(command, **_identity(user), env=_env(**environment), stderr=subprocess.PIPE)


def _identity(user: int) -> dict[str, Any]:
    """With the strictest umask a user may have."""
    return {"user": user, "group": user, "extra_groups": [], "cwd": "/", "umask": 0o077}


def _env(**more: str) -> dict[str, str]:
    path = f"{ROOT}:{sysconfig.get_path('purelib')}"
    return clean_environment(PYTHONPATH=path, HOME="/nonexistent", PYTHONDONTWRITEBYTECODE="1", **more)


@cache
def python() -> str | None:
    """A Python other users may execute and that finds our packages; None: there is none."""
    for program in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run(
                [program, "-c", "import sdk, msgspec, uvicorn, psutil"],
                **_identity(OTHER), env=_env(), capture_output=True, timeout=30,
            )  # fmt: skip
        except OSError:
            continue
        if done.returncode == 0:
            return program
    return None


@pytest.fixture
def folder() -> Iterator[Path]:
    """As deploy/systemd/gpumon.tmpfiles makes it."""
    if python() is None:
        pytest.skip("other users cannot use this Python, its packages or this checkout")
    base = Path(tempfile.mkdtemp(prefix="gpumon-test-", dir="/dev/shm"))
    base.chmod(0o755)
    rings = base / "gpumon"
    rings.mkdir()
    os.chown(rings, DAEMON, DAEMON)
    rings.chmod(0o3773)
    yield rings
    shutil.rmtree(base)


def attempt(user: int, code: str) -> str:
    """The error a user gets, or nothing."""
    _, errors = as_user(user, "-c", code).communicate(timeout=20)
    return errors.decode().strip().splitlines()[-1] if errors else ""


def test_every_user_writes_and_only_the_daemon_reads_and_removes(folder: Path) -> None:
    trainer = as_user(TRAINER, "-c", TRAIN, GPUMON_DIR=str(folder), GPUMON_RUN_ID="shared-1")
    options = [
        "--dir",
        str(folder),
        "--store",
        "none",
        "--source",
        "none",
        "--listen",
        "none",
        "--interval",
        "0.2",
    ]
    daemon = as_user(DAEMON, "-m", "monitor.cli.main", "daemon", *options)
    try:
        ring = wait_for(lambda: next(folder.glob("*.ring"), None), seconds=20)
        status = ring.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (TRAINER, DAEMON, 0o640)
        wait_for(lambda: steps(folder / "gpumon.sock") > 20, seconds=20)
        assert "PermissionError" in attempt(OTHER, f"import os; os.listdir({str(folder)!r})")
        assert "PermissionError" in attempt(OTHER, f"open({str(ring)!r}, 'rb')")
        assert "PermissionError" in attempt(OTHER, f"import os; os.unlink({str(ring)!r})")
        assert attempt(DAEMON, f"import os; os.unlink({str(ring)!r})") == ""
    finally:
        for process in (trainer, daemon):
            process.kill()
            process.wait(10)


def steps(socket: Path) -> int:
    """Steps the daemon has read; none while it is not there yet."""
    try:
        runs = Client(f"unix:{socket}").snapshot().runs
    except UserError:
        return 0
    return runs[0].steps if runs else 0

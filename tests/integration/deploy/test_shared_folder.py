"""The service's folder, with real users: everybody writes, only the daemon reads and removes."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.client import Client
from monitor.model.errors import UserError
from tests.conftest import wait_for
from tests.users import as_user, attempt, require_users

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

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """As deploy/systemd/gpumon.tmpfiles creates it."""
    require_users()
    base = Path(tempfile.mkdtemp(prefix="gpumon-test-", dir="/dev/shm"))
    base.chmod(0o755)
    rings = base / "gpumon"
    rings.mkdir()
    os.chown(rings, DAEMON, DAEMON)
    rings.chmod(0o3773)
    runtime = base / "runtime"
    runtime.mkdir(mode=0o755)
    os.chown(runtime, DAEMON, DAEMON)
    yield rings
    shutil.rmtree(base)


def test_every_user_writes_and_only_the_daemon_reads_and_removes(folder: Path) -> None:
    service = {"GPUMON_DIR": str(folder), "GPUMON_SERVICE_USER": str(DAEMON)}
    trainer = as_user(TRAINER, "-c", TRAIN, **service, GPUMON_RUN_ID="shared-1")
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
    runtime = folder.parent / "runtime"
    daemon = as_user(DAEMON, "-m", "monitor.cli.main", "daemon", *options, RUNTIME_DIRECTORY=str(runtime))
    try:
        ring = wait_for(lambda: next(folder.glob("*.ring"), None))
        status = ring.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (TRAINER, DAEMON, 0o640)
        wait_for(lambda: steps(runtime / "gpumon.sock") > 20)
        assert "PermissionError" in attempt(OTHER, f"import os; os.listdir({str(folder)!r})")
        assert "PermissionError" in attempt(OTHER, f"open({str(ring)!r}, 'rb')")
        assert "PermissionError" in attempt(OTHER, f"import os; os.unlink({str(ring)!r})")
        assert attempt(DAEMON, f"import os; os.unlink({str(ring)!r})") == ""
    finally:
        for process in (trainer, daemon):
            process.kill()
            process.wait(10)


def steps(socket: Path) -> int:
    """Steps the daemon has read; 0 while it is not there yet."""
    try:
        runs = Client(f"unix:{socket}").snapshot().runs
    except UserError:
        return 0
    return runs[0].steps if runs else 0

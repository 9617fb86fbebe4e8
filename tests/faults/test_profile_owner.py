"""Who may have a run profiled: its owner and root, and nobody can interfere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.cli.main import main
from monitor.model.errors import EXIT_FAILED, EXIT_USAGE
from sdk import ring
from tests.conftest import wait_for
from tests.faults.people import ALICE, MALLORY, shared_folder
from tests.rings import RingFile, read_ring
from tests.users import as_user, attempt, require_users

LOOP = """
import time
from sdk import TrainingMonitor
with TrainingMonitor("hers") as m:
    while True:
        with m.phase("forward"):
            time.sleep(0.002)
        m.step()
"""
ASK = (
    "import sys; from monitor.cli.main import main; sys.exit(main(['profile', {run!r}, '--dir', {folder!r}]))"
)


@pytest.fixture
def folder() -> Iterator[Path]:
    require_users()
    with shared_folder() as place:
        yield place


@pytest.fixture
def hers(folder: Path) -> Iterator[RingFile]:
    """A run of Alice's that uses no torch, which is what it answers when asked."""
    process = as_user(ALICE, "-c", LOOP, GPUMON_DIR=str(folder))
    try:
        path = wait_for(lambda: next(folder.glob("*.ring"), None))
        wait_for(lambda: read_ring(path).header.head)
        yield read_ring(path)
    finally:
        process.kill()
        process.communicate(timeout=60)


def requests(folder: Path, found: RingFile) -> Path:
    return Path(ring.request_folder(str(next(folder.glob("*.ring"))), found.header.requests))


def ask(folder: Path, run: str, user: int) -> tuple[int, str]:
    asked = as_user(user, "-c", ASK.format(run=run, folder=str(folder)))
    _, errors = asked.communicate(timeout=120)
    return asked.returncode, errors.decode()


def test_root_may_ask(
    folder: Path, hers: RingFile, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["profile", "hers", "--dir", str(folder), "-o", str(tmp_path / "t.json")]
    assert main(words) == EXIT_FAILED
    assert "does not use torch" in capsys.readouterr().err, "her process has seen it and answered"
    assert not requests(folder, hers).exists()


def test_nobody_else_may(folder: Path, hers: RingFile) -> None:
    code, errors = ask(folder, f"{hers.meta['run']}", MALLORY)
    assert code == EXIT_USAGE and "Traceback" not in errors
    assert "there is no run" in errors or "belongs to" in errors
    assert [path.suffix for path in folder.iterdir()] == [ring.SUFFIX]


def test_a_folder_of_somebody_else_is_not_looked_at(
    folder: Path, hers: RingFile, capsys: pytest.CaptureFixture[str]
) -> None:
    """GIVEN Mallory knows the name, which requires reading her ring, THEN her process does not touch what is
    there, and whoever asks is told that the name is taken."""
    place = requests(folder, hers)
    made = f"import os; os.mkdir({str(place)!r}, 0o777); os.chmod({str(place)!r}, 0o777)"
    assert attempt(MALLORY, made) == ""
    request = '{"steps": 1, "first": 0, "until_ns": 4611686018427387904}'
    assert attempt(MALLORY, f"open({str(place / ring.REQUEST)!r}, 'w').write({request!r})") == ""
    head = read_ring(next(folder.glob("*.ring"))).header.head
    second = 1.5 / 0.002
    wait_for(lambda: read_ring(next(folder.glob("*.ring"))).header.head > head + second)
    assert [path.name for path in place.iterdir()] == [ring.REQUEST]
    assert main(["profile", "hers", "--dir", str(folder), "-o", "/nonexistent.json"]) == EXIT_USAGE
    assert "being profiled already" in capsys.readouterr().err

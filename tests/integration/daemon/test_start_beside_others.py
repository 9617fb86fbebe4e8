"""Starting on a machine with other users: nobody else can keep a daemon from starting or replace it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitor.client import Client
from monitor.model.errors import UserError
from monitor.model.paths import endpoint_name
from tests.conftest import PATIENCE, wait_for
from tests.faults.people import ALICE, MALLORY, shared_folder
from tests.integration.daemon.process import GPUMON, clean_environment
from tests.users import as_user, require_users

SQUAT = """
import fcntl, os, sys, time
held = []
for name in sys.argv[1:]:
    held.append(os.open(name, os.O_RDWR | os.O_CREAT, 0o666))
    os.fchmod(held[-1], 0o666)
    fcntl.flock(held[-1], fcntl.LOCK_SH)
print("squatting", file=sys.stderr, flush=True)
time.sleep(600)
"""


@pytest.fixture
def rings() -> Iterator[Path]:
    """A ring directory every user may write to."""
    require_users()
    with shared_folder() as place:
        yield place


@contextmanager
def running(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def private(tmp_path: Path, owner: int) -> Path:
    """A runtime directory as systemd-logind creates it, where its user can reach it."""
    place = Path(f"/dev/shm/gpumon-test-{os.getpid()}-{owner}")
    place.mkdir(mode=0o700)
    os.chown(place, owner, owner)
    return place


def answers(socket: Path) -> bool:
    try:
        return Client(f"unix:{socket}").snapshot().seq > 0
    except UserError:
        return False


def test_files_of_others_in_the_ring_directory_keep_no_daemon_from_starting(
    rings: Path, tmp_path: Path
) -> None:
    """GIVEN Mallory has created, and holds locked, every file a daemon might conceivably use there WHEN Alice
    starts one THEN it runs, and its lock and socket are hers alone."""
    name = endpoint_name(rings)
    names = ["daemon.lock", "gpumon.sock", "gpumon.lock", f"{name}.lock", f"{name}.sock"]
    runtime = private(tmp_path, ALICE)
    options = ["--dir", str(rings), "--store", "none", "--source", "none", "--listen", "none"]
    try:
        with running(as_user(MALLORY, "-c", SQUAT, *(str(rings / one) for one in names))) as mallory:
            assert mallory.stderr is not None and mallory.stderr.readline() == b"squatting\n"
            daemon = as_user(
                ALICE, "-m", "monitor.cli.main", "daemon", *options, XDG_RUNTIME_DIR=str(runtime)
            )
            with running(daemon):
                place = runtime / "gpumon"
                wait_for(lambda: answers(place / f"{name}.sock"))
                found = {path.name: path.lstat() for path in place.iterdir()}
                assert set(found) == {f"{name}.lock", f"{name}.sock"}
                assert {stat.S_IMODE(one.st_mode) for one in found.values()} == {0o600}
                assert {one.st_uid for one in found.values()} == {ALICE}
    finally:
        subprocess.run(["rm", "-r", str(runtime)], check=True)


def start(rings: Path, runtime: Path) -> subprocess.CompletedProcess[str]:
    options = ["--dir", str(rings), "--store", "none", "--source", "none", "--listen", "none"]
    return subprocess.run(
        [*GPUMON, "daemon", *options],
        env=clean_environment(RUNTIME_DIRECTORY=str(runtime)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def strangers(place: Path, lock: Path) -> None:
    place.mkdir()
    os.chown(place, MALLORY, MALLORY)


def open_to_all(place: Path, lock: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def linked_folder(place: Path, lock: Path) -> None:
    (place.parent / "elsewhere").mkdir()
    place.symlink_to(place.parent / "elsewhere")


def linked_lock(place: Path, lock: Path) -> None:
    place.mkdir(mode=0o700)
    (place.parent / "precious").touch()
    lock.symlink_to(place.parent / "precious")


def second_name(place: Path, lock: Path) -> None:
    place.mkdir(mode=0o700)
    (place.parent / "precious").write_text("precious")
    os.link(place.parent / "precious", lock)


def pipe(place: Path, lock: Path) -> None:
    place.mkdir(mode=0o700)
    os.mkfifo(lock)


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (strangers, "belongs to"),
        (open_to_all, "others may write to"),
        (linked_folder, "is not a directory"),
        (linked_lock, "cannot lock"),
        (second_name, "is not a file that belongs to this user alone"),
        (pipe, "is not a file that belongs to this user alone"),
    ],
)
def test_a_runtime_directory_that_is_not_private_is_refused(
    rings: Path, tmp_path: Path, prepare: object, said: str
) -> None:
    place = tmp_path / "runtime"
    assert callable(prepare)
    prepare(place, place / f"{endpoint_name(rings)}.lock")
    done = start(rings, place)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    precious = tmp_path / "precious"
    assert not precious.exists() or precious.read_text() in ("", "precious"), "nothing was written through it"


def test_a_strangers_socket_is_not_replaced(rings: Path, tmp_path: Path) -> None:
    """Root could remove it, but whoever put it there may be serving from it."""
    path = tmp_path / "gpumon.sock"
    bind = f"import socket; s = socket.socket(socket.AF_UNIX); s.bind({str(path)!r})"
    subprocess.run([*GPUMON[:1], "-c", bind], check=True)
    os.chown(path, MALLORY, MALLORY)
    options = ["--dir", str(rings), "--store", "none", "--source", "none", "--socket", str(path)]
    done = subprocess.run(
        [*GPUMON, "daemon", *options],
        env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 2 and "belongs to" in done.stderr and path.exists()

"""What is said of ring directories, shared memory and the history."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from monitor.doctor import storage
from monitor.doctor.check import Context
from tests.unit.doctor.prepared import complains, with_settings, write


def test_a_ring_directory_that_is_made_later_and_one_that_is_there(context: Context) -> None:
    result = storage.ring_directory(context)
    assert result.status == "PASS"
    assert "does not exist yet" in result.detail
    directory = context.settings.dir[0]
    directory.mkdir(mode=0o700)
    (directory / "a.0.ring").write_bytes(b"")
    assert storage.ring_directory(context).facts["rings"] == 1
    assert os.listdir(directory) == ["a.0.ring"]  # the check leaves nothing behind


def test_a_ring_directory_that_cannot_be(context: Context, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    complains(storage.ring_directory(with_settings(context, dir=(file,))), "FAIL", "is not a directory")
    below = with_settings(context, dir=(file / "rings",))
    complains(storage.ring_directory(below), "FAIL", "cannot be created")
    complains(
        storage.ring_directory(with_settings(context, dir=(Path("/proc/gpumon"),))),
        "FAIL",
        "cannot be created",
    )


def test_an_unwritable_ring_directory(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    context.settings.dir[0].mkdir()
    monkeypatch.setattr(storage, "try_to_write", lambda directory: "read-only file system")
    complains(storage.ring_directory(context), "FAIL", "read-only")


def test_the_worst_of_several_directories_counts(context: Context, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    both = with_settings(context, dir=(tmp_path / "rings", tmp_path / "file"))
    assert storage.ring_directory(both).status == "FAIL"


def test_a_directory_open_to_all_needs_the_sticky_bit(context: Context) -> None:
    directory = context.settings.dir[0]
    directory.mkdir()
    directory.chmod(0o777)
    complains(storage.ring_directory(context), "WARN", "sticky")
    directory.chmod(0o3773)
    assert storage.ring_directory(context).status == "PASS"


def test_somebody_elses_directory(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    context.settings.dir[0].mkdir(mode=0o700)
    monkeypatch.setattr("monitor.doctor.storage.os.getuid", lambda: 4242)
    if context.settings.dir[0].stat().st_uid == 0:
        assert storage.ring_directory(context).status == "PASS"  # root is trusted
    else:
        complains(storage.ring_directory(context), "WARN", "belongs to uid")


@pytest.mark.parametrize(("mib", "status"), [(3, "FAIL"), (20, "WARN"), (500, "PASS")])
def test_room_for_rings(context: Context, monkeypatch: pytest.MonkeyPatch, mib: int, status: str) -> None:
    context.settings.dir[0].mkdir()
    monkeypatch.setattr(storage, "free_bytes", lambda path: mib << 20)
    assert storage.ring_directory(context).status == status


def test_network_file_systems(context: Context) -> None:
    directory = context.settings.dir[0]
    directory.mkdir()
    mounts = f"1 1 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / {directory} rw shared:1 - nfs4 server:/x rw\n"
    write(context.roots.proc / "self/mountinfo", mounts)
    complains(storage.ring_directory(context), "WARN", "nfs4")


@pytest.mark.parametrize(
    ("total", "free", "status"), [(64, 60, "WARN"), (8192, 100, "WARN"), (8192, 8000, "PASS")]
)
def test_shared_memory(
    context: Context, monkeypatch: pytest.MonkeyPatch, total: int, free: int, status: str
) -> None:
    room = SimpleNamespace(f_blocks=total, f_bavail=free, f_frsize=1 << 20)
    monkeypatch.setattr("monitor.doctor.storage.os.statvfs", lambda path: room)
    result = storage.shm(context)
    assert result.status == status
    assert bool(result.remedy) == (status == "WARN")


def test_history(context: Context, tmp_path: Path) -> None:
    assert storage.history(context).status == "SKIP"
    assert storage.history(with_settings(context, store=tmp_path / "a/b/history.db")).status == "PASS"
    complains(storage.history(with_settings(context, store=Path("/proc/x/history.db"))), "FAIL", "/proc/x")

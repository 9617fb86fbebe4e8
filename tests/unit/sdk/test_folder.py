"""Which folders rings may be in: only their owner, root and the service may replace what is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sdk import TrainingMonitor
from sdk.folder import problem

STRANGER = 54321


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rings"
    made.mkdir(mode=0o700)
    return made


@pytest.mark.parametrize(
    ("mode", "wrong"),
    [(0o700, None), (0o755, None), (0o1777, None), (0o777, "no sticky bit"), (0o707, "no sticky bit")],
)
def test_a_shared_folder_has_to_be_sticky(folder: Path, mode: int, wrong: str | None) -> None:
    folder.chmod(mode)
    found = problem(str(folder))
    assert found is None if wrong is None else wrong in (found or "")


def test_links_and_files_are_no_folders(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").touch()
    assert problem(str(tmp_path / "link")) == "it is a symbolic link"
    assert problem(str(tmp_path / "file")) == "it is not a folder"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_strangers_folder_is_refused_and_the_services_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(folder, STRANGER, -1)
    assert f"belongs to user {STRANGER}" in (problem(str(folder)) or "")
    monkeypatch.setenv("GPUMON_SERVICE_USER", str(STRANGER))
    assert problem(str(folder)) is None


@pytest.mark.parametrize("how", ["link", "shared"])
def test_training_goes_on_without_a_ring(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    place = folder
    if how == "link":
        place = tmp_path / "link"
        place.symlink_to(folder)
    else:
        folder.chmod(0o777)
    monkeypatch.setenv("GPUMON_DIR", str(place))
    with pytest.warns(RuntimeWarning, match="not recorded"), TrainingMonitor() as m:
        for _ in m.loader(range(5)):
            m.step()
    assert m.get_summary()["steps"] == 5
    assert not list(folder.iterdir())

"""Where a trial may write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.experiments import isolation
from monitor.experiments.isolation import Copy, Isolation, Overlay, choose
from monitor.model.errors import UserError


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The user's folder, which is the current one, and one of ours."""
    own, scratch = tmp_path / "own", tmp_path / "scratch"
    own.mkdir()
    scratch.mkdir()
    (own / "model.pt").write_text("weeks")
    monkeypatch.chdir(own)
    return own, scratch


def test_a_copy_is_written_to_and_the_folder_is_not(folders: tuple[Path, Path]) -> None:
    own, scratch = folders
    code = "import sys; open('model.pt', 'w').write('x'); open(sys.argv[1], 'w').write('y')"
    words, cwd = Copy().place([sys.executable, "-c", code, f"{own}/new.pt"], scratch)
    subprocess.run(words, cwd=cwd, check=True)
    assert {path.name: path.read_text() for path in own.iterdir()} == {"model.pt": "weeks"}


def test_an_overlay_forgets(folders: tuple[Path, Path]) -> None:
    own, scratch = folders
    overlay = Overlay([])
    (scratch / "check").mkdir()
    problem = overlay.problem(scratch / "check")
    if problem:
        pytest.skip(f"this machine allows none: {problem}")
    code = "import os; open('model.pt', 'w').write('x'); print(open('model.pt').read(), os.getcwd())"
    words, cwd = overlay.place([sys.executable, "-c", code], scratch)
    done = subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["x", str(own)]
    assert {path.name: path.read_text() for path in own.iterdir()} == {"model.pt": "weeks"}
    assert os.listdir(scratch / "overlay") == []


def test_without_a_safe_place_nothing_is_run(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "MOST_BYTES", 1)
    monkeypatch.setattr(Overlay, "problem", lambda self, scratch: "no overlay: not permitted")
    with pytest.raises(UserError, match=r"not permitted; .* too much to copy: trials would write"):
        choose("auto", [], folders[1])
    assert type(choose("none", [], folders[1])) is Isolation


def test_a_copy_where_there_is_no_overlay(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Overlay, "problem", lambda self, scratch: "no overlay: not permitted")
    assert isinstance(choose("auto", [], folders[1]), Copy)
    with pytest.raises(UserError):
        choose("overlay", [], folders[1])

"""The wheel and the sdist are built, installed into an empty environment and run. Nothing is downloaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[3]
PACKAGES = ("gpumon", "_gpumon_sdk", "monitor", "sdk", "trainers")
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
OLDEST_SETUPTOOLS = (74, 1)
"""As pyproject.toml requires: older ones do not read the extension modules from it."""


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def built(kind: str, tree: Path, folder: Path) -> Path:
    """Built without isolation, with the installed setuptools."""
    return folder / run(sys.executable, "-c", BUILD, f"build_{kind}", folder, cwd=tree).splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From a copy of the tree, because a build writes next to its sources."""
    if tuple(int(part) for part in version("setuptools").split(".")[:2]) < OLDEST_SETUPTOOLS:
        pytest.fail("the build needs a newer setuptools: pip install -e '.[dev]'")
    tree = tmp_path_factory.mktemp("tree")
    for name in PACKAGES:
        unwanted = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / name, tree / name, ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    return built("sdist", tree, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From the sdist: what it lacks, the wheel lacks."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return built("wheel", next(folder.iterdir()), tmp_path_factory.mktemp("wheel"))


def test_the_names_of_the_files(sdist: Path, wheel: Path) -> None:
    assert sdist.name.startswith("gpumon_train-") and sdist.name.endswith(".tar.gz")
    assert wheel.name.startswith("gpumon_train-") and wheel.suffix == ".whl"


def test_an_empty_environment_runs_it(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    run(*pip, wheel, cwd=tmp_path)
    assert run(tmp_path / "env" / "bin" / "gpumon", "--version", cwd=tmp_path).startswith("gpumon ")
    code = "from gpumon import TrainingMonitor as A; from sdk import TrainingMonitor as B; print(A is B)"
    assert run(python, "-c", code, cwd=tmp_path) == "True"


def test_everything_is_in_it(wheel: Path) -> None:
    """Every file of the packages that is not C code; the compiled parts are optional."""
    import zipfile

    inside = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "ls-files", *PACKAGES, cwd=ROOT).splitlines()
    missing = [
        name for name in tracked if name not in inside and Path(name).suffix not in (".c", ".h", ".md")
    ]
    assert missing == []

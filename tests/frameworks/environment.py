"""Pythons that have the frameworks or other libraries: environments of their own that share our torch."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "out" / "frameworks"


def python_with_frameworks() -> Path:
    """`GPUMON_FRAMEWORKS_PYTHON`, else one that is made here once."""
    return _python("frameworks", Path(__file__).with_name("requirements.txt"))


def python_with_libraries() -> Path:
    """`GPUMON_LIBRARIES_PYTHON`, else one that is made here once."""
    return _python("libraries", Path(__file__).with_name("libraries.txt"))


def _python(name: str, requirements: Path) -> Path:
    given = os.environ.get(f"GPUMON_{name.upper()}_PYTHON")
    if given:
        return Path(given)
    folder = FOLDER.with_name(name)
    installed = folder / "installed.txt"
    """The list as it was installed."""
    if not installed.exists() or installed.read_text() != requirements.read_text():
        _make(folder, requirements)
        installed.write_text(requirements.read_text())
    return folder / "bin" / "python"


def _make(folder: Path, requirements: Path) -> None:
    """Without dependencies: they would bring another torch. What is needed of them is in the list."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    library = next(folder.glob("lib/python*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (library / "ours.pth").write_text("\n".join(ours) + "\n")
    command = [str(python), "-m", "pip", "install", "-q", "--no-deps", "-r", str(requirements)]
    subprocess.run(command, check=True)


def version(python: Path, distribution: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    found = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    return found.stdout.strip() or "not installed"

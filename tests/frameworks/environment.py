"""A Python that has the frameworks: a virtual environment of its own that shares our torch."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "out" / "frameworks"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
INSTALLED = FOLDER / "installed.txt"
"""The list as it was installed."""


def python_with_frameworks() -> Path:
    """`GPUMON_FRAMEWORKS_PYTHON`, else one that is made here once."""
    given = os.environ.get("GPUMON_FRAMEWORKS_PYTHON")
    if given:
        return Path(given)
    python = FOLDER / "bin" / "python"
    if not INSTALLED.exists() or INSTALLED.read_text() != REQUIREMENTS.read_text():
        _make(python)
    return python


def _make(python: Path) -> None:
    """Without dependencies: they would bring another torch. What is needed of them is in the list."""
    if not python.exists():
        venv.create(FOLDER, with_pip=True)
    library = next(FOLDER.glob("lib/python*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (library / "ours.pth").write_text("\n".join(ours) + "\n")
    command = [str(python), "-m", "pip", "install", "-q", "--no-deps", "-r", str(REQUIREMENTS)]
    subprocess.run(command, check=True)
    INSTALLED.write_text(REQUIREMENTS.read_text())


def version(python: Path, distribution: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    found = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    return found.stdout.strip() or "not installed"

"""A Python that has the libraries the programs use, and the peers, and everything we have."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIBRARIES = ("accelerate", "transformers", "lightning", "torch_geometric")
PEERS = ("traceml-ai", "wandb")


def price_python() -> Path:
    """Made once under `out/`; what cannot be installed is missing there, and the programs that need it are
    left out and named."""
    given = os.environ.get("GPUMON_PRICE_PYTHON")
    if given:
        return Path(given)
    folder = ROOT / "out" / "price"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        library = next(folder.glob("lib/python*/site-packages"))
        ours = [path for path in sys.path if path.endswith("site-packages")]
        (library / "ours.pth").write_text("\n".join(ours) + "\n")
        for name in (*LIBRARIES, *PEERS):
            _install(python, name)
    return python


def _install(python: Path, name: str) -> None:
    command = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        print(f"{name} cannot be installed here: {done.stderr.strip()[-200:]}", file=sys.stderr)


def has(python: Path, module: str) -> bool:
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([str(python), "-c", code], capture_output=True).returncode == 0

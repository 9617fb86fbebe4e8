"""A Python that starts with torch already imported.

    subprocess.run([warm.python(), "train.py"])

Importing torch takes two to three seconds of a core, more than most tests train for. One process imports it and forks
for every start; torch is imported anew there as far as anybody can see who waits for that, as `gpumon run` does.
Everything else is as usual: arguments, environment, streams, signals, exit code. What the fork cannot do (options and
variables that Python or torch read as they start) is done by the real Python instead. Tests of starting, of who is
whose parent, or of stopped processes take `sys.executable`.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
READ_AT_START = (
    "ATEN", "DNNL", "GPUMON_STANDIN", "KMP", "LD_", "MALLOC", "MKL", "OMP", "ONEDNN", "OPENBLAS", "PYTHON", "TORCH_",
)  # fmt: skip
"""Beginnings of the names of such variables."""
READ_LATER = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
"""Of these: the server sees to them."""


@functools.cache
def python() -> str:
    """Path of the executable, whose server lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="gpumon-warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if name not in READ_LATER}
    kept = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
    client = (HERE / "client.py").read_text(encoding="utf-8")
    names = f"REAL, SOCKET, KEPT = {sys.executable!r}, {str(folder / 'socket')!r}, {kept!r}\n"
    names += f"READ_AT_START, READ_LATER = {READ_AT_START!r}, {READ_LATER!r}\n"
    executable = folder / "python"
    executable.write_text(f"#!{sys.executable} -IS\n{names}{client}", encoding="utf-8")
    executable.chmod(0o755)
    _serve(folder, environment, str(executable))
    return str(executable)


def _serve(folder: Path, environment: dict[str, str], executable: str) -> None:
    """Start the server and wait until it listens. It ends when its stdin does, that is, with this process."""
    server = subprocess.Popen(
        [sys.executable, "-P", str(HERE / "server.py"), str(folder / "socket"), executable],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
    )
    assert server.stdin is not None and server.stdout is not None
    atexit.register(server.wait)
    atexit.register(server.stdin.close)
    assert server.stdout.readline() == b"ready\n", "the server of warm Pythons did not start"

"""A Python that starts with torch already imported.

    subprocess.run([warm.python(), "train.py"])

Importing torch with what its optimizers need takes three seconds of a core, more than most tests train. One
process imports it and forks for every start. There torch is imported anew as far as those can see who wait
for that, as `gpumon run` does; arguments, environment, streams, signals and exit code are as usual. What a
fork cannot do (options and variables that Python or torch read as they start) the real Python does instead.
Tests of starting, of who is whose parent, and of stopped processes use `sys.executable`.
"""

from __future__ import annotations

import atexit
import functools
import marshal
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
"""Now, before any test changes its own."""
READ_AT_START = (
    "ATEN", "DNNL", "GPUMON_STANDIN", "KMP", "LD_", "MALLOC", "MKL", "OMP", "ONEDNN", "OPENBLAS", "PYTHON",
    "TORCH_",
)  # fmt: skip
"""Beginnings of the names of such variables."""
READ_LATER = (
    "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE",
    "GPUMON_STANDIN_SPEEDS", "GPUMON_STANDIN_OUT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK",
)  # fmt: skip
"""Of these: seen to after the fork. The last two are set by scikit-learn, for an OpenMP that is not ours."""


@functools.cache
def python() -> str:
    """Path of the executable, whose server lives as long as this process."""
    return _python({})


@functools.cache
def python_with_device() -> str:
    """The same where the stand-in device is already there; for a command with `device.environment`."""
    from tests import device

    return _python(device.environment())


def _python(extra: dict[str, str]) -> str:
    folder = Path(tempfile.mkdtemp(prefix="gpumon-warm-"))
    environment = {k: v for k, v in (ENVIRONMENT | extra).items() if k != "PYTHONPATH"}
    kept = {k: v for k, v in environment.items() if k.startswith(READ_AT_START) and k not in READ_LATER}
    known = (sys.executable, str(folder / "socket"), kept, READ_AT_START, READ_LATER)
    (folder / "known").write_bytes(marshal.dumps(known))
    executable = folder / "python"
    executable.write_text(f"#!{sys.executable} -IS\n" + (HERE / "client.py").read_text(), encoding="utf-8")
    executable.chmod(0o755)
    _serve(folder, environment, str(executable))
    return str(executable)


def _serve(folder: Path, environment: dict[str, str], executable: str) -> None:
    """Start the server and wait until it listens. It ends when its stdin does, that is, with this process,
    and takes the folder with it."""
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

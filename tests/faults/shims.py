"""Small C libraries loaded before the system's (LD_PRELOAD), built here: failing calls, another clock."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.conftest import require_program


@cache
def built(source: str) -> str:
    """Path of the library built from this source; needs a C compiler."""
    folder = tempfile.mkdtemp(prefix="gpumon-shim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = f"{folder}/shim.so"
    command = [require_program("cc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library]
    subprocess.run([*command, str(Path(__file__).parent / source), "-ldl"], check=True, capture_output=True)
    return library


def other_clock(shift: Path) -> dict[str, str]:
    """Environment of a process whose wall clock is off by what the file says ("+40d"): libfaketime if it is
    installed, otherwise a library of ours."""
    known = [str(path) for path in Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]
    return {
        "LD_PRELOAD": known[0] if known else built("clock.c"),
        "FAKETIME_TIMESTAMP_FILE": str(shift),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONDONTWRITEBYTECODE": "1",  # files seem to be of another age, too
    }

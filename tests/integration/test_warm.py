"""The Python that has torch from the start behaves like one that has not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests import warm
from tests.conftest import PATIENCE, wait_for

pytestmark = pytest.mark.slow
TELLS = """
import os, sys
print(sys.argv[1:], sys.stdin.read(), os.environ["WORD"], os.getcwd(), __name__, __file__ == sys.argv[0])
print("torch" in sys.modules, "_gpumon_sdk" in sys.modules)
import torch
print(torch.ones(2).sum().item(), "torch" in sys.modules, sys.path[0] == os.path.dirname(__file__))
print("an error", file=sys.stderr)
sys.exit(7)
"""


def both(folder: Path, *words: str, **extra: str) -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of the real Python and of the warm one."""
    env = os.environ | {"WORD": "hello"} | extra
    done = [
        subprocess.run(
            [python, *words],
            input="given",
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        for python in (sys.executable, warm.python())
    ]
    return [(one.returncode, one.stdout, one.stderr) for one in done]


def test_arguments_streams_folder_environment_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    real, ours = both(tmp_path, str(tmp_path / "tells.py"), "a b", "--c")
    assert ours == real and real[0] == 7 and "['a b', '--c'] given hello" in real[1]


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("import os; print(1, flush=True); os.kill(os.getpid(), 9)", -9),
        ("import atexit, sys; atexit.register(lambda: print(sys.last_value)); raise ValueError('mine')", 1),
        ("import sys; sys.exit('a sentence')", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        (
            "import threading, time; threading.Timer(0.2, print, ('late',)).start()",
            0,
        ),
    ],
)
def test_every_way_to_end(code: str, ends: int, tmp_path: Path) -> None:
    real, ours = both(tmp_path, "-c", code)
    assert ours == real and real[0] == ends


def test_modules_and_sitecustomize(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "__main__.py").write_text("import sys; print(sys.argv[1:], sys.own, __spec__.name)")
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.own = 'site'")
    real, ours = both(tmp_path, "-m", "job", "x", PYTHONPATH=str(tmp_path))
    assert ours == real == (0, "['x'] site job.__main__\n", "")


def test_what_is_read_at_the_start_is_left_to_the_real_one(tmp_path: Path) -> None:
    code = "import os; print('warm/ser' 'ver.py' in open(f'/proc/{os.getpid()}/cmdline').read())"
    assert [one[1] for one in both(tmp_path, "-c", code)] == ["False\n", "True\n"], "otherwise it is forked"
    assert [one[1] for one in both(tmp_path, "-c", code, OMP_NUM_THREADS="2")] == ["False\n", "False\n"]
    assert [one[1] for one in both(tmp_path, "-B", "-c", code)] == ["False\n", "False\n"]


def test_signals_reach_it_and_it_does_not_outlive_its_caller(tmp_path: Path) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        child = subprocess.Popen(
            [warm.python(), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdout is not None
        inside = int(child.stdout.readline())
        child.send_signal(number)
        assert child.wait(PATIENCE) == -number
        child.stdout.close()
        wait_for(partial(_is_gone, inside))


def _is_gone(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()

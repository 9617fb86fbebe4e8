"""Every command in README and docs is executed, or it is said why not and its options are checked."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.cli.main import _parsed, build_parser
from tests.conftest import PATIENCE, wait_for
from tests.integration.docs.commands import NOT_OURS, PARSED_ONLY, ROOT, Command, commands, reason

COMMANDS = list(commands())
OURS = [one for one in COMMANDS if one.words[0] == "gpumon"]
EXECUTED = [one for one in OURS if not reason(PARSED_ONLY, one.ours) and "daemon" not in one.ours]
GPUMON = [sys.executable, "-m", "monitor.cli.main"]
TRAIN = """
import time
from sdk import TrainingMonitor
with TrainingMonitor("train", batch_size=8) as m:
    for _ in range(60):
        with m.phase("data"):
            time.sleep(0.003)
        with m.phase("forward"):
            time.sleep(0.002)
        m.step(loss=1.0)
"""
MAY_SAY_NO = ("doctor", "compare")
"""Commands that answer with exit code 1 what a machine or two short runs may well be like."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a script, and two runs of it."""
    place = tmp_path_factory.mktemp("project")
    (place / "train.py").write_text(TRAIN)
    for _ in range(2):
        subprocess.run([sys.executable, "train.py"], cwd=place, env=environment(place), check=True)
    return place


def environment(place: Path, **more: str) -> dict[str, str]:
    found = {
        "GPUMON_DIR": f"{place}/rings",
        "GPUMON_STORE": f"{place}/history.db",
        "GPUMON_LISTEN": "127.0.0.1:1",
    }
    return {**os.environ, **found, "PYTHONPATH": str(ROOT), "HOME": str(place), **more}


def run(words: list[str], place: Path, **more: str) -> subprocess.CompletedProcess[str]:
    plain = [sys.executable if word == "python" else word for word in words]
    return subprocess.run(
        [*GPUMON, *plain],
        cwd=place,
        env=environment(place, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_there_are_commands() -> None:
    assert len(OURS) > 40 and len(EXECUTED) > 15


@pytest.mark.slow
@pytest.mark.parametrize("command", EXECUTED, ids=lambda one: one.line)
def test_it_runs(command: Command, folder: Path) -> None:
    done = run(command.words[1:], folder)
    allowed = (0, 1) if command.words[1] in MAY_SAY_NO else (0,)
    assert done.returncode in allowed, f"{command.page}: {done.stderr}"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", OURS, ids=lambda one: one.line)
def test_its_options_exist(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    own = command.words[1:]
    assert own[0] in build_parser(None).format_help()
    _parsed(own)  # raises for an option that is not there


@pytest.mark.parametrize(
    "command",
    [one for one in COMMANDS if one not in OURS and one.words[0] != "curl"],
    ids=lambda one: one.line,
)
def test_what_is_not_ours_is_explained_or_there(command: Command) -> None:
    match command.words:
        case ["make", target, *_]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), command
        case ["python", "-m", module, *rest] if module == "pytest":
            assert all((ROOT / word).exists() for word in rest if word.startswith("tests/"))
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module), command
        case _:
            assert reason(NOT_OURS, command.line), f"{command}: execute it or say why not, in commands.py"


@pytest.mark.slow
def test_the_daemon_is_started_and_asked(folder: Path) -> None:
    starts = next(one for one in OURS if one.ours.startswith("daemon --source simulated"))
    fetches = next(one for one in COMMANDS if one.words[0] == "curl")
    address = f"127.0.0.1:{free_port()}"
    own = {"GPUMON_LISTEN": address, "GPUMON_SOCKET": "none"}
    with daemon(starts.words[1:], folder, own):
        url = fetches.words[1].replace("127.0.0.1:10835", address)
        text = wait_for(lambda: answer(url))
        assert "simulated" in text and "gpumon_gpu_info" in text
        assert run(shlex.split("status"), folder, **own).returncode == 0


def daemon(words: list[str], place: Path, own: dict[str, str]) -> Daemon:
    return Daemon(
        subprocess.Popen([*GPUMON, *words], cwd=place, env=environment(place, **own), stderr=subprocess.PIPE)
    )


class Daemon:
    """Ends with the block, as Ctrl-C would end it."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self.child.send_signal(signal.SIGTERM)
        self.child.communicate(timeout=PATIENCE)
        assert self.child.returncode == 0


def answer(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return str(response.read().decode())
    except OSError:
        return ""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def reasons_in_use() -> Iterator[str]:
    yield from (reason(PARSED_ONLY, one.ours) for one in OURS)
    yield from (reason(NOT_OURS, one.line) for one in COMMANDS if one not in OURS)


def test_no_reason_is_left_over() -> None:
    unused = {*PARSED_ONLY.values(), *NOT_OURS.values()} - set(reasons_in_use())
    assert unused == set()

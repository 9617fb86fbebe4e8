"""Starts a command under gpumon: our environment, its own terminal and signals, its exit code as ours."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import monitor
from monitor.model.errors import UserError

NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""The exit codes a shell uses."""
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH")


def command_words(given: Sequence[str], asked: str) -> list[str]:
    """The command after ``--`` of `gpumon asked`; a script that is not executable is run with our Python."""
    words = list(given[1:] if given and given[0] == "--" else given)
    if not words:
        raise UserError("no command to run", hint=f"gpumon {asked} -- python train.py")
    if words[0].endswith(".py") and os.path.isfile(words[0]) and not os.access(words[0], os.X_OK):
        words.insert(0, sys.executable)
    if shutil.which(words[0]) is None:
        if os.path.exists(words[0]):
            raise UserError(f"{words[0]} is not executable", code=NOT_EXECUTABLE)
        raise UserError(f"no such command: {words[0]}", code=NOT_FOUND)
    return words


def launch_environment(name: str | None) -> dict[str, str]:
    """An environment in which every Python process starts recording itself as soon as it imports torch."""
    environment = dict(os.environ)
    autostart = str(_sdk_folder() / "autostart")
    inherited = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    environment["PYTHONPATH"] = os.pathsep.join([autostart, *(p for p in inherited if p != autostart)])
    environment["GPUMON_AUTO"] = "1"
    stem = "".join(letter if letter.isalnum() else "-" for letter in name or "run")[:32].strip("-") or "run"
    environment["GPUMON_RUN_ID"] = f"{stem}-{time.strftime('%m%d-%H%M%S')}-{os.urandom(3).hex()}"
    if name:
        environment["GPUMON_RUN_NAME"] = name
    return environment


def _sdk_folder() -> Path:
    """Next to `monitor`, wherever that is installed; a script's own `sdk` must not be mistaken for ours."""
    folder = Path(monitor.__file__).parent.parent / "sdk"
    if not (folder / "autostart").is_dir():
        raise UserError("gpumon's sdk package is missing", hint="pip install --force-reinstall gpumon-train")
    return folder


def run_child(words: list[str], environment: dict[str, str], stdout: int | None = None) -> int:
    """Run to the end; returns the exit code a shell would (128 + n for signal n)."""
    child = subprocess.Popen(words, env=environment, stdout=stdout)
    with _forwarding(child):
        code = child.wait()
    if code < 0:
        _note_signal(environment, child.pid, -code)
    return 128 - code if code < 0 else code


def _note_signal(environment: dict[str, str], pid: int, number: int) -> None:
    """Note in the run's rings what ended it: the process had no time to say so itself."""
    from monitor.runs import closing  # only once the child runs: psutil is slow to import
    from sdk.ring import default_directory

    folder, run = Path(default_directory()), environment["GPUMON_RUN_ID"]
    if number in (signal.SIGTERM, signal.SIGINT):
        closing.mark_interrupted(folder, run)
    else:
        closing.mark_killed(folder, run, pid, number)


@contextlib.contextmanager
def _forwarding(child: subprocess.Popen[bytes]) -> Iterator[None]:
    r"""Forward signals. Ctrl-C and Ctrl-\ reach the child directly from the terminal."""

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    terminal = sys.stdin is not None and sys.stdin.isatty()
    keys = signal.SIG_IGN if terminal else forward
    wanted: dict[str, Any] = dict.fromkeys(_FORWARDED, forward) | {"SIGINT": keys, "SIGQUIT": keys}
    before = {}
    for name, handler in wanted.items():
        number = getattr(signal, name, None)
        if number is not None:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""`gpumon run -- COMMAND…`: run a training script under gpumon, no code change.

The command gets our environment and nothing else changes for it: the same terminal, stdin, process
group, signals, and its exit code is ours. What we have to say comes afterwards, on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import monitor
from monitor.errors import UserError

HELP = "run a training script under gpumon, no code change: gpumon run -- python train.py"
NOT_FOUND = 127
NOT_EXECUTABLE = 126
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH")


class Watcher(Protocol):
    """What follows the run from outside and can tell about it afterwards."""

    def start(self) -> None: ...
    def finish(self, exit_code: int | None = None) -> Any: ...


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "gpumon run [options] -- COMMAND …"
    parser.add_argument("--name", help="name of the run (default: the script's name)")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON to FILE (- is stdout)")
    parser.add_argument("--connect", metavar="URL", help="ask this daemon instead of looking for one")
    parser.add_argument("--no-summary", action="store_true", help="say nothing afterwards")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")


def run(args: argparse.Namespace) -> int:
    words = _words(args.words)
    environment = launch_environment(args.name)
    if args.no_summary and not args.json:
        _become(words, environment)
    watcher = _watcher(args, environment["GPUMON_RUN_ID"])
    if watcher is not None:
        watcher.start()
    code = run_child(words, environment)
    if watcher is not None:
        _report(watcher.finish(code), args)
    return code


def _words(given: Sequence[str]) -> list[str]:
    words = list(given[1:] if given and given[0] == "--" else given)
    if not words:
        raise UserError("no command to run", hint="gpumon run -- python train.py")
    if words[0].endswith(".py") and os.path.isfile(words[0]) and not os.access(words[0], os.X_OK):
        words.insert(0, sys.executable)
    if shutil.which(words[0]) is None:
        if os.path.exists(words[0]):
            raise UserError(f"{words[0]} is not executable", code=NOT_EXECUTABLE)
        raise UserError(f"no such command: {words[0]}", code=NOT_FOUND)
    return words


def launch_environment(name: str | None) -> dict[str, str]:
    """The environment that makes every Python below it watch itself as soon as it imports torch."""
    environment = dict(os.environ)
    autostart = str(_sdk_folder() / "autostart")
    inherited = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    environment["PYTHONPATH"] = os.pathsep.join([autostart, *(p for p in inherited if p != autostart)])
    environment["GPUMON_AUTO"] = "1"
    stem = "".join(letter if letter.isalnum() else "-" for letter in name or "run")[:32]
    environment["GPUMON_RUN_ID"] = f"{stem}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    if name:
        environment["GPUMON_RUN_NAME"] = name
    return environment


def _sdk_folder() -> Path:
    """Beside `monitor`, wherever that is installed; a script's own `sdk` must not be taken for ours."""
    folder = Path(monitor.__file__).parent.parent / "sdk"
    if not (folder / "autostart").is_dir():
        raise UserError("gpumon's sdk package is missing", hint="reinstall gpumon")
    return folder


def _become(words: list[str], environment: dict[str, str]) -> None:
    """Nothing to say afterwards: then there need not be two processes."""
    sys.stdout.flush()
    os.execvpe(words[0], words, environment)


def run_child(words: list[str], environment: dict[str, str], stdout: int | None = None) -> int:
    """Run to the end; the exit code as a shell gives it (128 + n for signal n)."""
    child = subprocess.Popen(words, env=environment, stdout=stdout)
    with _forwarding(child):
        code = child.wait()
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _forwarding(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hand signals on. Ctrl-C and Ctrl-\\ reach the child from the terminal by itself."""

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


def _watcher(args: argparse.Namespace, run_id: str) -> Watcher | None:
    """The one who writes the report."""
    from monitor.summary import RunWatcher

    return RunWatcher(run_id, connect=args.connect)


def _report(report: Any, args: argparse.Namespace) -> None:
    """The report, on stderr: stdout belongs to the command."""
    from monitor.summary_text import show, write_json

    if args.json:
        write_json(report, args.json)
    if not args.no_summary:
        show(report, sys.stderr)

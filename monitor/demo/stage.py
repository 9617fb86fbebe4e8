"""Where a demonstration happens: a temporary folder, a daemon of its own, and every process it starts."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.client import Client
from monitor.model.errors import EXIT_FAILED, UserError
from monitor.model.snapshot import Snapshot

GPUMON = (sys.executable, "-m", "monitor.cli.main")
START_SECONDS = 30.0
"""How long the daemon may take to answer for the first time."""


@dataclass(frozen=True, slots=True)
class Props:
    """What the daemon is started with besides its folder."""

    source: str = "auto"
    gpus: int = 1
    interval: float = 0.5
    events: str = ""
    """A scenario for simulated GPUs, as TOML."""
    policy: str = ""
    """Thresholds that differ from the default ones, as TOML."""


class Stage:
    """Leaving it ends every process that was started on it."""

    def __init__(self, folder: Path, props: Props) -> None:
        self.folder, self.props = folder, props
        self.url = f"unix:{folder / 'gpumon.sock'}"
        self.rings = folder / "rings"
        self.rings.mkdir()
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        self.environment = {**os.environ, "GPUMON_DIR": str(self.rings), "OMP_NUM_THREADS": threads}
        for name in ("GPUMON_CONNECT", "GPUMON_AUTO", "GPUMON_RUN_ID", "GPUMON_RUN_NAME"):
            self.environment.pop(name, None)
        self.children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Stage:
        try:
            snapshot = self._daemon(self.props.source)
            if self.props.source == "auto" and not snapshot.gpus:
                self.end(self.children[-1])
                self._daemon("simulated")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for child in reversed(list(self.children)):
            self.end(child)

    def _daemon(self, source: str) -> Snapshot:
        daemon = self.start([*GPUMON, "daemon", *self._options(source)], "daemon")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and daemon.poll() is None:
            with contextlib.suppress(UserError), Client(self.url) as client:
                return client.snapshot()
            time.sleep(0.1)
        raise UserError(f"the demo's daemon did not start: {self.last_words('daemon')}", code=EXIT_FAILED)

    def _options(self, source: str) -> Iterator[str]:
        yield from (f"--source={source}", "--listen=none", f"--dir={self.rings}")
        yield f"--interval={self.props.interval}"
        yield from (f"--socket={self.folder / 'gpumon.sock'}", f"--store={self.folder / 'history.db'}")
        if source == "simulated":
            yield f"--gpus={self.props.gpus}"
        for option, text in (("scenario", self.props.events), ("policy", self.props.policy)):
            if text:
                path = self.folder / f"{option}.toml"
                path.write_text(text, encoding="utf-8")
                yield f"--{option}={path}"

    def start(self, words: Sequence[str], log: str) -> subprocess.Popen[bytes]:
        """A child in a session of its own, so that it and its workers can be ended together."""
        with open(self.folder / f"{log}.log", "wb") as errors:
            child = subprocess.Popen(
                list(words),
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        self.children.append(child)
        return child

    def end(self, child: subprocess.Popen[bytes]) -> None:
        """It and all it has started: asked first, then killed."""
        for ending in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, ending)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=5)
        self.children.remove(child)

    def last_words(self, log: str) -> str:
        """The last line a child wrote to its standard error."""
        text = (self.folder / f"{log}.log").read_text(encoding="utf-8", errors="replace").strip()
        return text.splitlines()[-1] if text else "it said nothing"

    def gpumon(self, *words: str) -> bool:
        """A command of ours that asks this stage's daemon; whether it succeeded."""
        done = subprocess.run(
            [*GPUMON, *words, f"--connect={self.url}"],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return done.returncode == 0

    @contextlib.contextmanager
    def screen(self) -> Iterator[None]:
        """The TUI on this terminal; the terminal is given back afterwards."""
        tui = subprocess.Popen([*GPUMON, "tui", f"--connect={self.url}", "--readonly"], env=self.environment)
        try:
            yield
        finally:
            if tui.poll() is None:  # else it has given the terminal back itself
                tui.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    tui.wait(timeout=5)
                if tui.poll() is None:
                    tui.kill()
                    tui.wait()
                _restore_terminal()


def _restore_terminal() -> None:
    """Main screen, cursor, no mouse reports: whatever the TUI had no time to undo."""
    sys.stdout.write("\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?2004l")
    sys.stdout.flush()
    if shutil.which("stty"):
        subprocess.run(["stty", "sane"], check=False)

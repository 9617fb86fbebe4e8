"""A real daemon in a child process, with its own port and directory."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from monitor.client import Client
from tests.conftest import PATIENCE, wait_for

GPUMON = [sys.executable, "-m", "monitor.cli.main"]


def clean_environment(**more: str) -> dict[str, str]:
    """Our environment, without what a developer's shell may have set for gpumon or systemd."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("GPUMON_", "JOURNAL_", "NOTIFY_"))
    }
    return kept | more


class Daemon:
    """Started on entering, stopped on leaving; `log` is its output."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        environment: dict[str, str] | None = None,
        interval: str = "0.2",
        through: Sequence[str] = (),
    ) -> None:
        """`through`: a command to start it with, such as prlimit."""
        self.folder = folder
        self.socket = folder / "gpumon.sock"
        self.options = ("--interval", interval, *options)
        self._environment = environment or {}
        self._through = through
        self._log = folder / "daemon.log"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        base = ["--dir", str(self.folder / "rings"), "--store", str(self.folder / "history.db")]
        base += ["--socket", str(self.socket)]
        listen = [] if "--listen" in self.options else ["--listen", "127.0.0.1:0"]
        return [*self._through, *GPUMON, "daemon", *base, *listen, *self.options]

    def __enter__(self) -> Daemon:
        with self._log.open("wb") as log:
            environment = clean_environment(**self._environment)
            self.process = subprocess.Popen(self.command(), env=environment, stderr=log, stdout=log)
        wait_for(self._serving)
        return self

    def _serving(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the daemon ended: {self.log}"
        return "serving on" in self.log

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    @property
    def url(self) -> str:
        return re.findall(r"https?://[\d.]+:\d+", self.log)[-1]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self) -> Client:
        return Client(f"unix:{self.socket}")

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (lower case) and body over TCP, whatever the status."""
        request = urllib.request.Request(
            self.url + path, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()

    def json(self, path: str) -> Any:
        return json.loads(self.get(path)[2])

    def metric(self, name: str, *labels: str) -> float | None:
        """Value of the first series whose line has the name and all label texts."""
        for line in self.get("/metrics")[2].decode().splitlines():
            if line.startswith((f"{name} ", f"{name}{{")) and all(label in line for label in labels):
                return float(line.rpartition(" ")[2])
        return None

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Returns its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

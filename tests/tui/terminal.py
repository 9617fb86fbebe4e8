"""A program in a pseudo terminal of a given size: what it writes, how much, and what it costs."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import threading
import time
from collections.abc import Sequence
from types import TracebackType

import psutil

from tests.conftest import PATIENCE


class Terminal:
    """Starts `command` on a pty and reads all it writes in a thread; nobody answers its questions."""

    def __init__(self, command: Sequence[str], size: tuple[int, int], environment: dict[str, str]) -> None:
        self.began = time.monotonic()
        self.received = 0
        self.first_text: float | None = None
        self._needle = b""
        self._tail = b""
        self._command, self._size = list(command), size
        self._environment = environment | {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
        }

    def watch_for(self, text: str) -> None:
        """Note when `text` first appears."""
        self._needle = text.encode()

    def __enter__(self) -> Terminal:
        columns, rows = self._size
        self.began = time.monotonic()
        pid, self._master = pty.fork()
        if pid == 0:
            os.execvpe(self._command[0], self._command, self._environment)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = psutil.Process(pid)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self) -> None:
        while True:
            try:
                ready, _, _ = select.select([self._master], [], [], 0.5)
                data = os.read(self._master, 65536) if ready else None
            except OSError:
                return
            if data == b"":
                return
            if data:
                self._take(data)

    def _take(self, data: bytes) -> None:
        self.received += len(data)
        if self._needle and self.first_text is None:
            self._tail = (self._tail + data)[-65536:]
            if self._needle in self._tail:
                self.first_text = time.monotonic() - self.began

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def echoes(self) -> bool:
        """Whether the terminal writes what is typed, as a shell needs it."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def cpu_seconds(self) -> float:
        """Of the program itself."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def leave(self, keys: bytes = b"q") -> int:
        """Ask it to end with a key; its exit code, or a kill when it does not."""
        self.press(keys)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            done, status = os.waitpid(self.process.pid, os.WNOHANG)
            if done:
                self._ended = True
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        raise TimeoutError(f"{self._command[0]} does not leave on {keys!r}")

    _ended = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            os.kill(self.process.pid, signal.SIGKILL)
            os.waitpid(self.process.pid, 0)
        os.close(self._master)
        self._reader.join(2)

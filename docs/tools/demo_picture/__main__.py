"""``python -m docs.tools.demo_picture [FILE]``: runs `gpumon demo` in a pseudo terminal and writes what it showed as
docs/screens/demo.svg, which moves by itself. Waiting is shortened: the picture says so.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from docs.tools.demo_picture.svg import animated
from docs.tools.demo_picture.transcript import Transcript

TARGET = Path(__file__).parents[2] / "screens" / "demo.svg"
COLUMNS, ROWS = 92, 30


def main(words: list[str]) -> int:
    target = Path(words[0]) if words else TARGET
    with tempfile.TemporaryDirectory() as folder:
        transcript, code = record([sys.executable, "-m", "monitor.cli.main", "demo"], folder)
    if code == 0:
        target.write_text(animated(transcript, COLUMNS), encoding="utf-8")
    print(f"exit code {code}, {len(transcript.moments)} moments, {target}")
    return code


def record(command: list[str], folder: str) -> tuple[Transcript, int]:
    """What the command writes and when, on a terminal of COLUMNS × ROWS."""
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PYTHONPATH": root}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.execvpe(command[0], command, environment)
    transcript, began, rest = Transcript(folder), time.monotonic(), b""
    while chunk := _read(terminal):
        whole, newline, rest = (rest + chunk).rpartition(b"\n")  # a read may end in the middle of a letter
        transcript.feed((whole + newline).decode("utf-8", "replace"), time.monotonic() - began)
    return transcript, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

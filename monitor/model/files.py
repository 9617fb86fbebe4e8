"""Files a user names: what is no file, or never ends, is said in one sentence and not read for ever."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from monitor.model.errors import UserError

MOST_TEXT = 1 << 20
"""Chosen: no file that people write for gpumon is nearly as long."""


def read_text(path: Path) -> str:
    """A file somebody wrote. Raises `OSError`, `UnicodeDecodeError`, and `UserError` if it is too long."""
    with open(path, "rb") as file:
        data = file.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise UserError(f"{path} is longer than 1 MiB: is it the right file?")
    return data.decode("utf-8")


def check_ends(file: BinaryIO, path: Path) -> None:
    """Raises `UserError` for what is neither a file nor a pipe: a device may have no end."""
    mode = os.fstat(file.fileno()).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise UserError(f"{path} is not a file")

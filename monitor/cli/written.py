"""Writing an answer to a file, or to stdout for "-"."""

from __future__ import annotations

import sys

from monitor.model.errors import UserError


def write_file(text: str, target: str) -> None:
    """Raises `UserError` if it cannot be written."""
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error

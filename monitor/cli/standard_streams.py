"""The three standard streams, as every command counts on them: there, even if the caller has closed them."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

from monitor.model.errors import EXIT_USAGE, UserError

_NAMES = ("stdin", "stdout", "stderr")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What writing says of a full disk, a quota, a limit, a broken device."""


def use() -> None:
    """Put nothing (`os.devnull`) in the place of a closed stream: otherwise the next file anybody opens gets
    its number, and then what is written to it. A command we start finds it closed, as without us."""
    for number, name in enumerate(_NAMES):
        with contextlib.suppress(OSError):
            if not _is_open(number):
                _open_as(number)
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def _open_as(number: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number, inheritable=False)
        os.close(opened)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def discard() -> None:
    """There is nobody to write to any more: what is still buffered must not fail at the exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def cannot_write(error: OSError) -> UserError | None:
    """What to say of an error that means there is no room to write; None if it means something else."""
    if error.errno not in _FULL:
        return None
    where = error.filename or "the output"
    return UserError(f"cannot write {where}: {error.strerror}", code=EXIT_USAGE)

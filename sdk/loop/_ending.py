"""How a loop ended: by itself, on request, or by an error."""

from __future__ import annotations

import contextlib
import signal

from .. import ring

BY_SIGNAL = tuple(128 + number for number in (signal.SIGINT, signal.SIGTERM))
"""Exit codes of a process that was interrupted or terminated on request."""


def end_state(cause: BaseException) -> int:
    """The ring's state after this exception. Ctrl-C and a clean exit are not failures."""
    if isinstance(cause, KeyboardInterrupt):
        return ring.S_INTERRUPTED
    if isinstance(cause, SystemExit):
        if cause.code in BY_SIGNAL:
            return ring.S_INTERRUPTED
        return ring.S_FAILED if cause.code else ring.S_ENDED
    return ring.S_ENDED if isinstance(cause, GeneratorExit) else ring.S_FAILED


def keep_exit_code(cause: BaseException | None) -> None:
    """CPython exits with 130 if the latest source it ran was ended by Ctrl-C. What we import at the exit may
    have run source since then (`exec` in dataclasses), so run some that ends the same way."""
    if isinstance(cause, KeyboardInterrupt):
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")

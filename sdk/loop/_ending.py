"""How a loop ended: by itself, on request, or by an error."""

from __future__ import annotations

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

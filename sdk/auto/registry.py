"""The single automatic instrumentation of this process.

`gpumon run` loads this package under another name (the script may have its own `sdk`), so a script that
imports `sdk` gets a second copy. Both use the same place: an attribute of `sys`.
"""

from __future__ import annotations

import sys
from typing import Any

_PLACE = "_gpumon_auto"
_OWNER = "_gpumon_owner"


def auto() -> Any:
    """The active `StepRecognizer`, or None."""
    found = getattr(sys, _PLACE, None)
    return found if found is not None and found.on else None


def set_auto(value: Any) -> None:
    setattr(sys, _PLACE, value)


def owner() -> Any:
    """The session of the script's own monitor that took over from ours, or None."""
    return getattr(sys, _OWNER, None)


def set_owner(session: Any) -> None:
    setattr(sys, _OWNER, session)

"""The one automatic instrumentation of this process.

`gpumon run` loads this package under a name of its own (the script may have an `sdk` of its own), so a
script that imports `sdk` has a second copy: both use the same place, an attribute of `sys`.
"""

from __future__ import annotations

import sys
from typing import Any

_PLACE = "_gpumon_auto"
_OWNER = "_gpumon_owner"


def auto() -> Any:
    """The `StepRecognizer` that is at work here, or None."""
    found = getattr(sys, _PLACE, None)
    return found if found is not None and found.on else None


def set_auto(value: Any) -> None:
    setattr(sys, _PLACE, value)


def owner() -> Any:
    """The session of a monitor in the script's own code that has taken over from ours, or None."""
    return getattr(sys, _OWNER, None)


def set_owner(session: Any) -> None:
    setattr(sys, _OWNER, session)

"""The one auto monitor of this process.

`gpumon run` loads this package under a name of its own (the script may have an `sdk` of its own), so a
script that imports `sdk` has a second copy: both look into the same place, an attribute of `sys`.
"""

from __future__ import annotations

import sys
from typing import Any

_PLACE = "_gpumon_auto"


def auto() -> Any:
    """The `Auto` that is at work here, or None."""
    found = getattr(sys, _PLACE, None)
    return found if found is not None and found.on else None


def set_auto(value: Any) -> None:
    setattr(sys, _PLACE, value)

"""Regular expressions that are compiled at their first use: at import each would take tens of microseconds up
to some milliseconds, and a process needs few of them."""

from __future__ import annotations

import re
from typing import Any, cast


class _Later:
    def __init__(self, text: str, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        """Found once: a name that is an attribute does not get here again."""
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def later(text: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern that `re.compile` would return, for as long as it is only asked to search."""
    return cast("re.Pattern[str]", _Later(text, int(flags)))

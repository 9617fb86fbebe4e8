"""A word to the user, once."""

from __future__ import annotations

import sys
import warnings

_said: set[str] = set()


def say_once(text: str) -> None:
    """A warning, the first time only, and not if warnings are errors here."""
    if text in _said:
        return
    _said.add(text)
    try:
        warnings.warn(f"gpumon: {text}", RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        sys.stderr.write(f"gpumon: {text}\n")

"""Warnings to the user, each shown once."""

from __future__ import annotations

import sys
import warnings

_warned: set[str] = set()


def warn_once(text: str) -> None:
    """Warn only the first time; where warnings are errors, write to stderr instead."""
    if text in _warned:
        return
    _warned.add(text)
    try:
        warnings.warn(f"gpumon: {text}", RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        sys.stderr.write(f"gpumon: {text}\n")

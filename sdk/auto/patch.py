"""Replacing a function of another library, and restoring it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Undo = Callable[[], object]


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Undo:
    """Replace `owner.name` with `make(original)`; returns a function that restores it."""
    original = getattr(owner, name)
    wrapped = functools.wraps(original)(make(original))
    setattr(owner, name, wrapped)
    return lambda: setattr(owner, name, original) if getattr(owner, name) is wrapped else None

"""Warnings to the user, each shown once."""

from __future__ import annotations

import contextlib
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
    except Exception:  # noqa: BLE001 — warnings may be errors, and a script's `showwarning` may raise anything
        with contextlib.suppress(AttributeError, OSError, ValueError):  # stderr may be closed, or gone
            sys.stderr.write(f"gpumon: {text}\n")


def kind_of(error: BaseException) -> str:
    """The name of its class, even if a metaclass has another idea of `__name__`."""
    return str(type.__dict__["__name__"].__get__(type(error)))


def text_of(error: BaseException) -> str:
    """Its message; empty if its class cannot make one."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 — `__str__` is the training's own code
        return ""

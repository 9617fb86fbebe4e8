"""Two small things every entry point needs: to be nothing inside compiled code, and to be harmless."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from .core import tracing


class Compiling:
    """`check()` is False when code runs, and True where torch compiles it, so that a mark inside compiled
    code is traced as nothing at all."""

    check: Callable[[], bool] = staticmethod(tracing)


def look_for_torch() -> bool:
    """Take up torch when somebody has imported it; we never do that ourselves."""
    found = getattr(_compiler(), "is_dynamo_compiling", None)
    if found is None:
        return False
    if tracing not in _substituted:
        Compiling.check = staticmethod(found)
    return True


def compiler_loaded() -> None:
    """torch's compiler is there, and has compiled nothing yet: from now on a C function tells it."""
    if substituted(tracing, lambda: True):
        Compiling.check = staticmethod(tracing)


def substituted(function: Callable[..., Any], traced: Callable[..., Any]) -> bool:
    """Tell torch's compiler to trace `traced` where it meets this C function; whether it will (torch
    before 2.5 cannot be told)."""
    substitute = getattr(_compiler(), "substitute_in_graph", None)
    if substitute is None:
        return False
    if function not in _substituted:
        if len(_substituted) >= _MOST_SUBSTITUTED:
            return False
        try:
            substitute(function, skip_signature_check=True)(traced)
        except (TypeError, ValueError, RuntimeError, ImportError):
            return False
        _substituted.add(function)
    return True


def _compiler() -> Any:
    return getattr(sys.modules.get("torch"), "compiler", None)


_MOST_SUBSTITUTED = 32
"""The compiler never forgets what it was told: a process with many runs must not grow by that."""
_substituted: set[Callable[..., Any]] = set()
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

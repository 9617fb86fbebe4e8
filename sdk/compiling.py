"""To be nothing inside compiled code: what `torch.compile` must know about our marks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def _never() -> bool:
    return False


class Compiling:
    """`check()` is False when code runs, and True where torch compiles it, so that a mark inside compiled
    code is traced as nothing at all."""

    check: Callable[[], bool] = staticmethod(_never)


def look_for_torch() -> None:
    """Take up torch when somebody has imported it; we never do that ourselves."""
    found = getattr(_compiler(), "is_dynamo_compiling", None)
    if found is not None and not _told:
        Compiling.check = staticmethod(found)


def tell_compiler(function: Callable[..., Any], traced: Callable[..., Any]) -> bool:
    """torch's compiler is loaded, and has compiled nothing yet: where it meets this C function, it is to
    trace the Python one. Whether it will: torch before 2.5 cannot be told."""
    substitute = getattr(_compiler(), "substitute_in_graph", None)
    if substitute is None:
        return False
    if function not in _told:
        try:
            substitute(function, skip_signature_check=True)(traced)
        except (TypeError, ValueError, RuntimeError, ImportError):
            return False
        _told.add(function)
    return True


def untraced(*functions: Callable[..., Any]) -> bool:
    """Whether all of these are nothing in compiled code."""
    return all(tell_compiler(function, lambda *args, **kwargs: None) for function in functions)


def check_with(tracing: Callable[[], bool]) -> None:
    """Let a C function, False where it runs, be the check: torch's own is in Python and dearer."""
    if tell_compiler(tracing, lambda: True):
        Compiling.check = staticmethod(tracing)


_told: set[Callable[..., Any]] = set()


def _compiler() -> Any:
    return getattr(sys.modules.get("torch"), "compiler", None)

"""What `torch.compile` must know about our marks: inside compiled code they are no-ops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def _never() -> bool:
    return False


class Compiling:
    """`check()` is False when code runs and True while torch compiles it, so a mark inside compiled code is
    traced as a no-op."""

    check: Callable[[], bool] = staticmethod(_never)


def find_torch() -> None:
    """Use torch's own check once somebody has imported torch; we never import it ourselves."""
    found = getattr(_compiler(), "is_dynamo_compiling", None)
    if found is not None and not _substituted:
        Compiling.check = staticmethod(found)


def _substitute(function: Callable[..., Any], traced: Callable[..., Any]) -> bool:
    """torch's compiler is loaded but has compiled nothing yet: have it trace the Python function wherever it
    meets this C function. Returns whether it will: torch before 2.5 has no such setting."""
    substitute = getattr(_compiler(), "substitute_in_graph", None)
    if substitute is None:
        return False
    if function not in _substituted:
        try:
            substitute(function, skip_signature_check=True)(traced)
        except (TypeError, ValueError, RuntimeError, ImportError):
            return False
        _substituted.add(function)
    return True


def trace_as_no_op(*functions: Callable[..., Any]) -> bool:
    """Have the compiler trace these C functions as no-ops; returns whether it will for all of them."""
    return all(_substitute(function, lambda *args, **kwargs: None) for function in functions)


def check_with(tracing: Callable[[], bool]) -> None:
    """Use a C function, which is False when run, as the check: torch's own is in Python and slower."""
    if _substitute(tracing, lambda: True):
        Compiling.check = staticmethod(tracing)


_substituted: set[Callable[..., Any]] = set()


def _compiler() -> Any:
    return getattr(sys.modules.get("torch"), "compiler", None)

"""Two small things every entry point needs: to be nothing inside compiled code, and to be harmless."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable


def _never() -> bool:
    return False


class Compiling:
    """Holds `torch.compiler.is_dynamo_compiling` once torch is there. Dynamo reads it as a constant,
    so a mark inside compiled code is traced as nothing at all."""

    check: Callable[[], bool] = staticmethod(_never)


def look_for_torch() -> bool:
    """Take up torch when somebody has imported it; we never do that ourselves."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    found = getattr(compiler, "is_dynamo_compiling", None)
    if found is None:
        return False
    Compiling.check = staticmethod(found)
    return True


def untraced(function: Callable[..., object]) -> bool:
    """Tell torch's compiler to take this C function for nothing; whether it does (torch before 2.5
    cannot be told)."""
    substitute = getattr(getattr(sys.modules.get("torch"), "compiler", None), "substitute_in_graph", None)
    if substitute is None:
        return False
    if function not in _untraced:
        if len(_untraced) >= _MOST_UNTRACED:
            return False
        try:
            substitute(function, skip_signature_check=True)(lambda *args, **kwargs: None)
        except (TypeError, ValueError, RuntimeError, ImportError):
            return False
        _untraced.add(function)
    return True


_MOST_UNTRACED = 32
"""The compiler never forgets what it was told: a process with many runs must not grow by that."""
_untraced: set[Callable[..., object]] = set()
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

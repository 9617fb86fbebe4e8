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

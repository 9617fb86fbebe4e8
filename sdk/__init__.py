"""What a training script imports: ``from sdk import TrainingMonitor``.

Names are imported on first use: the daemon needs only `sdk.ring` and should not pay for the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loop.monitor import TrainingMonitor
    from .loop.summary import Summary

__version__ = "0.1.0"
__all__ = ["Summary", "TrainingMonitor", "__version__"]

_HOMES = {"TrainingMonitor": ".loop.monitor", "Summary": ".loop.summary"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

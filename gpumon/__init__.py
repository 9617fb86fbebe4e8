"""``from gpumon import TrainingMonitor``: the names of `sdk`, for a project that has its own `sdk`.

In a notebook, ``%load_ext gpumon`` provides the cell magic ``%%gpumon`` (docs/sdk.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sdk import Summary, TrainingMonitor, __version__

__all__ = ["Summary", "TrainingMonitor", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .ours import sdk

    value = globals()[name] = getattr(sdk(), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext gpumon`` calls."""
    from .notebook.magic import register

    register(shell)

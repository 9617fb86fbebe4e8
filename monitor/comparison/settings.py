"""The configuration of a run."""

from __future__ import annotations

from typing import Any

from monitor.model.run import Run


def setting(run: Run, *keys: str) -> Any:
    """A value of the configuration probe; None if unknown."""
    value: Any = run.config
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value

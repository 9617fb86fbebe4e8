"""Detects autocast being entered. One patch for all monitors, removed with the last of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Listener = Callable[[str | None], None]
_listeners: list[Listener] = []
_original: Any = None


def listen(torch: Any, listener: Listener) -> Callable[[], None]:
    """Call `listener(dtype)` when enabled autocast is entered; returns a function that stops it."""
    global _original
    kind = torch.amp.autocast_mode.autocast
    if not _listeners:
        _original = kind.__enter__
        kind.__enter__ = _enter
    _listeners.append(listener)
    return lambda: _forget(kind, listener)


def _forget(kind: Any, listener: Listener) -> None:
    if listener in _listeners:
        _listeners.remove(listener)
        if not _listeners:
            kind.__enter__ = _original


def _enter(context: Any) -> Any:
    if getattr(context, "_enabled", True):
        dtype = getattr(context, "fast_dtype", None)
        for listener in list(_listeners):
            listener(None if dtype is None else str(dtype).removeprefix("torch."))
    return _original(context)

"""Lines at which the host waits for the device, in a few steps: what torch itself calls a synchronization.

On request, torch warns at every synchronizing CUDA operation. The warnings are counted here and not shown;
the training's own filters and its way of showing warnings are restored when the window closes.
"""

from __future__ import annotations

import linecache
import re
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from .. import ring
from ..structure.files import is_user_file, short_path

STEPS = 2
"""Chosen: steps in which warnings are counted."""
MOST_LINES = 8
"""Chosen: lines reported, those with the most waits."""
_SYNC, _PROTOTYPE = "called a synchronizing", "Synchronization debug mode"
"""How torch's warnings begin: about an operation that waits, and about the mode itself."""
_ALWAYS = "always", re.compile(_SYNC), Warning, None, 0
_NEVER = "ignore", re.compile(_PROTOTYPE), Warning, None, 0
"""Filters as `warnings` keeps them."""
_OFF, _WARN = 0, 1


class SyncWindow:
    """Opens once, when the run's kernels are known. `cuda` is the module `torch.cuda`."""

    def __init__(self, cuda: Any, flag_next: Callable[[int], None]) -> None:
        self._cuda = cuda
        self._flag_next = flag_next
        self._counter: _Counter | None = None
        self._left = STEPS
        self.lines: list[dict[str, Any]] | None = None
        """Where the host waits, and how often per step; None until a window has closed."""

    def step(self) -> None:
        """A record is being committed."""
        if self.lines is not None:
            return
        if self._counter is None:
            self._start()
            return
        self._left -= 1
        if self._left:
            self._flag_next(ring.F_SAMPLED)
        else:
            self.close()

    def _start(self) -> None:
        if self._cuda.get_sync_debug_mode() != _OFF:
            self.lines = []  # the training itself looks for them
            return
        self._counter = _Counter(threading.get_ident())
        self._counter.install()
        self._cuda.set_sync_debug_mode(_WARN)
        self._flag_next(ring.F_SAMPLED)

    def close(self) -> None:
        """End an open window."""
        counter, self._counter = self._counter, None
        if counter is None:
            return
        if self._cuda.get_sync_debug_mode() == _WARN:
            self._cuda.set_sync_debug_mode(_OFF)
        counter.remove()
        steps = max(1, STEPS - self._left)
        most = sorted(counter.lines.items(), key=lambda item: -item[1])[:MOST_LINES]
        self.lines = [_line(*place, count / steps) for place, count in most]


def _line(file: str, line: int, per_step: float) -> dict[str, Any]:
    code = linecache.getline(file, line).strip()
    return {"file": short_path(file), "line": line, "code": code, "per_step": per_step}


class _Counter:
    """Replaces `warnings.showwarning` and counts torch's warnings; all others pass through."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._shown_by: Any = None
        self.lines: dict[tuple[str, int], int] = {}

    def install(self) -> None:
        """Insert into the list itself: `filterwarnings` would also make warnings already shown once appear
        again."""
        _filters().insert(0, _ALWAYS)
        _filters().insert(0, _NEVER)
        self._shown_by, warnings.showwarning = warnings.showwarning, self._show

    def remove(self) -> None:
        if warnings.showwarning == self._show:
            warnings.showwarning = self._shown_by
        for one in (_ALWAYS, _NEVER):
            if one in warnings.filters:
                _filters().remove(one)

    def _show(
        self, message: Any, category: Any, filename: str, lineno: int, *more: Any, **named: Any
    ) -> None:
        if not str(message).startswith(_SYNC):
            self._shown_by(message, category, filename, lineno, *more, **named)
        elif threading.get_ident() == self._thread:
            place = _user_line(sys._getframe(1)) or (filename, lineno)
            self.lines[place] = self.lines.get(place, 0) + 1


def _filters() -> list[Any]:
    return warnings.filters  # type: ignore[return-value]


def _user_line(frame: FrameType | None) -> tuple[str, int] | None:
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno or 0
        frame = frame.f_back
    return None

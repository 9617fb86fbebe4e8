"""How often each line of user code calls something, in one step: tells a Python loop from one big call.

A profile function for a single step; not at all where somebody else profiles or dynamo is at work.
"""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import Any

from .place import is_user_file

LIMIT = 50_000
"""Events after which the step has been disturbed enough."""


class LineCalls:
    """(code, line) → calls made from there."""

    def __init__(self) -> None:
        self.counts: dict[tuple[CodeType, int], int] = {}
        self._left = 0
        self._on = False

    def start(self, thread: int) -> None:
        if self.counts or sys.getprofile() is not None or "torch._dynamo" in sys.modules:
            return
        if threading.get_ident() != thread:
            return
        self._left = LIMIT
        self._on = True
        sys.setprofile(self._event)

    def stop(self) -> None:
        if self._on:
            self._on = False
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            caller: FrameType | None = frame
        elif event == "call":
            caller = frame.f_back
        else:
            return
        self._left -= 1
        if self._left < 0:
            self.stop()
        elif caller is not None and is_user_file(caller.f_code.co_filename):
            key = (caller.f_code, caller.f_lineno or 0)
            self.counts[key] = self.counts.get(key, 0) + 1

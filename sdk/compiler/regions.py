"""Where torch's compiler is at work, as a profile function sees it.

From the call of something compiled to its return, the compiler inspects every Python function that runs,
including a profile function and all it calls, and compiles any it meets with a tensor. So a profile function
does nothing there. Its own first call there comes when a C function returns (the one that switched the
compiler on): the compiler then sees no tensor and leaves it alone for good.
"""

from __future__ import annotations

import os
from types import FrameType

_ENTRANCE = os.path.join("_dynamo", "eval_frame.py")
_ENTRANCES = ("compile_wrapper", "_fn")
"""Wrappers through which a compiled function is called, in newer and older versions of torch."""
_OFF = "DisableContext."
"""Prefix of the wrapper around functions torch keeps from its compiler, such as `torch.utils.checkpoint`."""
_COMPILER = os.path.join("_dynamo", "convert_frame.py")


class CompiledRegion:
    """Follows the events of one profile function."""

    def __init__(self) -> None:
        self._frame = 0
        """`id` of the call that entered the region; the frame itself would keep tensors alive."""

    def begin(self) -> None:
        """The profile function is installed now."""
        self._frame = 0

    def holds(self, frame: FrameType, event: str) -> bool:
        """Whether this event is inside. Do not pass the event's argument here: it may be a tensor."""
        if self._frame:
            if event == "return" and id(frame) == self._frame:
                self._frame = 0
            return True
        code = frame.f_code
        entrance = code.co_name in _ENTRANCES and code.co_filename.endswith(_ENTRANCE)
        if event == "call" and entrance and not code.co_qualname.startswith(_OFF):
            self._frame = id(frame)
        return False


def is_compiling(frame: FrameType) -> bool:
    """Whether this call is the compiler's own: a great many calls follow."""
    return frame.f_code.co_filename.endswith(_COMPILER)

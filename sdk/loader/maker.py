"""Who made a DataLoader: the author's own code, or a library that he calls."""

from __future__ import annotations

from types import FrameType
from typing import Any

from ..structure.files import is_ours, is_user_file

_PLACE = "_gpumon_own"
"""With an underscore: what copies a loader's settings to a new one leaves it out."""
_CONSTRUCTORS = 8
"""Chosen: frames of constructors to pass, one for each class a loader derives from, and of our hooks."""


def remember_maker(loader: Any, frame: FrameType | None) -> None:
    """A loader was made below this frame. The constructors of its own classes are no makers."""
    for _ in range(_CONSTRUCTORS):
        if frame is None or not (_has(frame, loader) or is_ours(frame.f_code.co_filename)):
            break
        frame = frame.f_back
    if frame is not None:
        setattr(loader, _PLACE, is_user_file(frame.f_code.co_filename))


def is_authors(loader: Any) -> bool | None:
    """None: it was made before anybody looked."""
    return getattr(loader, _PLACE, None)


def _has(frame: FrameType, loader: Any) -> bool:
    """Whether the function's first argument is the loader."""
    code = frame.f_code
    return code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is loader

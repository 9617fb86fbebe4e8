"""What happens to recorders from outside the loop: garbage collections, and forks."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

from .recorder import Recorder, alive


def watch_gc(recorder: Recorder) -> Callable[[], None]:
    """Count garbage collections into the recorder; gives the function that stops it."""
    started = [0]

    def callback(phase: str, info: dict[str, int]) -> None:
        recorder.collected(phase, started)

    gc.callbacks.append(callback)
    return lambda: gc.callbacks.remove(callback) if callback in gc.callbacks else None


def _silence_after_fork() -> None:
    """A forked child shares the mapping: it must never write there. If the parent was looking closely,
    the child inherits that, too, but not the thread that would end it."""
    for recorder in list(alive):
        recorder.switch_off()
    if alive and sys.getswitchinterval() < 0.001:
        sys.setswitchinterval(0.005)
    if alive and getattr(sys.getprofile(), "__module__", "").endswith("sdk.stepprofile"):
        sys.setprofile(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_silence_after_fork)

"""Events from outside the loop that recorders must handle: garbage collections, forks, a child's end."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

from ..core import NATIVE
from ..sampling.step_profile import StepProfile
from .recorder import Recorder, alive


def watch_gc(recorder: Recorder) -> Callable[[], None]:
    """Make the recorder count garbage collections; returns a function that stops it. Only if the callback is
    in C: a collection can happen anywhere, and Ctrl-C inside a Python callback would be lost."""
    if not NATIVE:
        return lambda: None
    callback = recorder.collected
    gc.callbacks.append(callback)
    return lambda: gc.callbacks.remove(callback) if callback in gc.callbacks else None


def at_child_end(call: Callable[[], None]) -> Callable[[], None]:
    """Have this called when a child of `multiprocessing` ends; returns a function that takes it back. Such a
    child runs finalizers of its own and, if it was forked, leaves without `atexit`. It forgets those from
    before its target began, so this is for when it trains."""
    process, util = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
    if process is None or util is None or process.parent_process() is None:
        return lambda: None
    kept = util.Finalize(None, call, exitpriority=0)
    return lambda: kept.cancel()


def _silence_after_fork() -> None:
    """A forked child shares the mapping and must never write to it. If the parent was sampling, the child
    inherits its switch interval and profile function, but not the thread that would restore them."""
    there = alive()
    for recorder in there:
        recorder.switch_off()
    if there and sys.getswitchinterval() < 0.001:
        sys.setswitchinterval(0.005)  # Python's own default
    if there and isinstance(getattr(sys.getprofile(), "__self__", None), StepProfile):
        sys.setprofile(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_silence_after_fork)

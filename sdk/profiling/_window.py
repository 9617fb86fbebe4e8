"""One window of torch's profiler over some steps, written as a Chrome trace."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from . import turn

_WARM, _LAST = 1, 1
"""Steps before and after those requested: in the first the profiler starts up, and trace readers omit the
last one, because most profilers stop inside it."""


class Window:
    """Open as soon as it is created; `wanted_elsewhere` is called when the script starts its own profiler."""

    def __init__(
        self, torch: Any, steps: int, *, device: bool, stacks: bool, wanted_elsewhere: Callable[[], None]
    ) -> None:
        self._torch = torch
        self._left = _WARM + steps + _LAST
        self._warm = _WARM
        self._step: Any = None
        kinds = torch.profiler.supported_activities() if device else [torch.profiler.ProfilerActivity.CPU]
        self._profile = torch.profiler.profile(activities=list(kinds), with_stack=stacks)
        with turn.quiet():
            self._profile.start()
        self._restore = turn.make_way(torch, wanted_elsewhere)

    def step(self, number: int) -> bool:
        """Step `number` begins; False: the window is full."""
        self._end_step()
        if self._left == 0:
            return False
        self._left -= 1
        if self._warm:
            self._warm -= 1
        else:
            self._step = self._torch.profiler.record_function(f"ProfilerStep#{number}")
            self._step.__enter__()
        return True

    def _end_step(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None, None, None)

    def stop(self) -> None:
        """End the window, which waits for the device."""
        self._restore()
        self._end_step()
        with turn.quiet():
            self._profile.stop()

    def write(self, path: str) -> None:
        """Write the trace; raises `OSError` if it did not fit there."""
        with turn.quiet():
            self._profile.export_chrome_trace(path)
        if not _is_whole(path):
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise OSError("could not write the trace next to the ring: not enough space")


def _is_whole(path: str) -> bool:
    """The profiler's library does not report a full disk; a complete trace ends with its bracket."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 64))
            return file.read().rstrip().endswith(b"}")
    except OSError:
        return False

"""A window of torch's profiler that the run's owner requests from outside, with `gpumon profile`.

Once a second, after a step, one system call checks whether the request folder exists. Nothing else happens
until it does. The steps of a window are flagged and excluded from the steady figures.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import ring
from ._mailbox import Mailbox, Request
from ._window import Window
from .turn import is_free, is_ours, is_prepared

NEVER = 1 << 62
_OWN_PROFILER = "the script is running its own profiler, and torch allows only one at a time"
_NO_TORCH = "the script does not use torch"
_NO_PROFILER = "this torch cannot write a profiler trace (it was built without Kineto)"
_ENDED = "the run ended before the window was complete"


class Loop(NamedTuple):
    """What a window needs from the run."""

    device: Callable[[], str | None]
    """The parameters' device."""
    busy: Callable[[], bool]
    """A sampling window is open, which would show up in the trace."""
    flag_next: Callable[[int], None]


class Requests:
    """`next_step` is the step after which `step` wants to be called."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._box: Mailbox | None = None
        self._request: Request | None = None
        self._window: Window | None = None
        self._until = 0
        """Until when somebody waits for an answer."""
        self.next_step = NEVER

    def attach(self, path: str, words: memoryview) -> None:
        """Accept requests beside this ring from now on."""
        if hasattr(os, "geteuid"):
            words[ring.H_REQUESTS] = int.from_bytes(os.urandom(8), "little") | 1
            self._box = Mailbox(ring.request_folder(path, words[ring.H_REQUESTS]))

    @property
    def taking(self) -> bool:
        return self._window is not None

    def look(self, steps: int) -> None:
        """A second has passed, and `steps` steps have been committed."""
        if self._box is None or self._request is not None or not self._box.open:
            return
        try:
            self._request = self._box.take()
        except (ValueError, RecursionError) as error:
            self._box.answer(ring.REFUSED, str(error))
            return
        if self._request is not None:
            self.next_step, self._until = max(steps, self._request.first), self._request.until_ns
        elif self._until < time.monotonic_ns():
            self._box.clear()  # whoever asked left without withdrawing

    def step(self, steps: int) -> None:
        """Step `next_step` has been committed."""
        self.next_step = steps + 1
        try:
            if not self._box or not self._box.open:
                self._end()  # withdrawn
            elif self._window is None:
                self._begin(steps)
            else:
                self._go_on(steps)
        except Exception as error:  # noqa: BLE001 — torch may raise anything; the training must not see it
            self._refuse(f"{type(error).__name__}: {error}")

    def _begin(self, steps: int) -> None:
        torch = sys.modules.get("torch")
        if torch is None:
            self._refuse(_NO_TORCH)
        elif not _has_profiler(torch):
            self._refuse(_NO_PROFILER)
        elif self._loop.busy() or is_ours(torch):
            return  # soon done
        elif not is_free(torch) or is_prepared(torch):
            self._refuse(_OWN_PROFILER)
        else:
            self._open(torch, steps)

    def _open(self, torch: Any, steps: int) -> None:
        assert self._request is not None and self._box is not None
        self._loop.flag_next(ring.F_SAMPLED)
        self._box.answer(ring.TAKING)
        device = self._loop.device()
        on_device = device is not None and not device.startswith("cpu")
        self._window = Window(
            torch,
            self._request.steps,
            device=on_device,
            stacks=self._request.stacks,
            wanted_elsewhere=lambda: self._refuse(_OWN_PROFILER),
        )
        self._window.step(steps + 1)

    def _go_on(self, steps: int) -> None:
        assert self._window is not None and self._box is not None
        self._loop.flag_next(ring.F_SAMPLED)
        if self._window.step(steps + 1):
            return
        window, self._window = self._window, None
        window.stop()
        window.write(os.path.join(self._box.path, ring.TRACE))
        self._box.answer(ring.WRITTEN)
        self._end()

    def _refuse(self, reason: str) -> None:
        """Once: whoever asked removes the folder when told, and a second answer would leave part of it."""
        if self._request is None:
            return
        self._end()
        if self._box is not None:
            self._box.answer(ring.REFUSED, reason)

    def _end(self) -> None:
        """End what is open; no request remains."""
        self._request, self.next_step = None, NEVER
        window, self._window = self._window, None
        if window is not None:
            window.stop()

    def close(self) -> None:
        """The run is over."""
        self.look(0)
        if self._request is not None:
            self._refuse(_ENDED)
        self._end()
        self._box = None


def _has_profiler(torch: Any) -> bool:
    known = hasattr(torch, "profiler") and hasattr(torch.autograd.profiler, "kineto_available")
    return known and bool(torch.autograd.profiler.kineto_available())

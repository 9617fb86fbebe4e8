"""What a loop calls, in a few steps: how often each user line calls something (a Python loop, or one big
call?), prints, reads of device values, copies to the device.

A profile function and nothing patched: dynamo knows torch's functions by identity, and a patched one
would break a graph. Not where somebody else profiles.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
import time
from types import FrameType
from typing import Any

from .place import is_user_file
from .returned import Returned

LIMIT = 40_000
"""Events after which the steps have been disturbed enough."""
_SYNCS = frozenset(("item", "cpu", "tolist", "numpy", "__bool__", "__float__", "__int__"))
_COPIES = frozenset(("to", "cuda"))
_LOGGING = os.path.join("logging", "__init__.py")


class StepProfile:
    """Counts over the profiled steps; `calls` is (file, line) → calls made from there, per step."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], int] = {}
        self._counts: dict[str, float] = {}
        self._left = 0
        self._began = 0
        self._steps = 0
        self._writes = 0
        self._written = 0
        self.returned = Returned()
        self.on = False

    def start(self, thread: int) -> bool:
        """Begin to count; False where it cannot be."""
        if sys.getprofile() is not None or threading.get_ident() != thread:
            return False
        self._lines.clear()
        self.returned = Returned()
        self._counts = dict.fromkeys(("sync.items", "sync.seconds", "log.prints", "log.seconds"), 0.0)
        if _cuda_in_use():
            self._counts |= dict.fromkeys(("transfer.copies", "transfer.blocking", "transfer.pageable"), 0.0)
            self._counts["transfer.bytes"] = 0.0
        self._left, self._steps, self._written, self.on = LIMIT, 0, _writes(), True
        sys.setprofile(self._event)
        return True

    def step(self) -> None:
        """A step has ended; more only while the budget lasts."""
        if self.on:
            self._steps += 1
            self.returned.step()
            if self._left < LIMIT // 2:
                self.stop()

    @property
    def steps(self) -> int:
        """Whole steps seen by the newest profile."""
        return self._steps

    def stop(self) -> None:
        if self.on:
            self.on = False
            sys.setprofile(None)
            self._writes = _writes() - self._written

    def scalars(self) -> dict[str, float]:
        """Everything per step; nothing when not one whole step was seen."""
        if not self._steps:
            return {}
        found = {f"{name}_per_step": value / self._steps for name, value in self._counts.items()}
        if self._written:
            found["log.writes_per_step"] = max(0, self._writes) / self._steps
        return found

    def calls(self) -> dict[tuple[str, int], int]:
        steps = max(1, self._steps)
        return {key: round(count / steps) for key, count in self._lines.items() if count >= steps}

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        """An exception here would come out of the user's line: none may."""
        try:
            self._see(frame, event, argument)
        except Exception:  # noqa: BLE001 — see above; then without counts
            self.on = False
            sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            self._line(frame)
            self._c_call(argument.__name__, argument, frame)
        elif event == "c_return":
            self._c_return(argument.__name__)
        elif event == "call":
            if frame.f_back is not None:
                self._line(frame.f_back)
            if frame.f_code.co_name == "handle" and frame.f_code.co_filename.endswith(_LOGGING):
                self._counts["log.prints"] += 1
        elif event == "return" and is_user_file(frame.f_code.co_filename):
            self.returned.seen(frame.f_code, argument)

    def _line(self, caller: FrameType) -> None:
        self._left -= 1
        if self._left < 0:
            self.stop()
        elif is_user_file(caller.f_code.co_filename):
            key = (caller.f_code.co_filename, caller.f_lineno or 0)
            self._lines[key] = self._lines.get(key, 0) + 1

    def _c_call(self, name: str, function: Any, frame: FrameType) -> None:
        if name == "print":
            self._counts["log.prints"] += 1
            self._began = time.monotonic_ns()
        elif name in _SYNCS and _is_tensor(function):
            self._counts["sync.items"] += 1
            self._began = time.monotonic_ns()
        elif name in _COPIES and "transfer.copies" in self._counts and _is_tensor(function):
            self._copy(function.__self__, frame)

    def _c_return(self, name: str) -> None:
        if self._began and (name == "print" or name in _SYNCS):
            area = "log" if name == "print" else "sync"
            self._counts[f"{area}.seconds"] += (time.monotonic_ns() - self._began) / 1e9
            self._began = 0

    def _copy(self, tensor: Any, frame: FrameType) -> None:
        """A tensor in host memory is moved. Whether without waiting stands in the line itself."""
        if tensor.device.type != "cpu" or tensor.dim() == 0:
            return
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno or 0)
        self._counts["transfer.copies"] += 1
        self._counts["transfer.bytes"] += tensor.numel() * tensor.element_size()
        self._counts["transfer.blocking"] += "non_blocking=True" not in text
        self._counts["transfer.pageable"] += not tensor.is_pinned()


def _is_tensor(function: Any) -> bool:
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(getattr(function, "__self__", None), kind)


def _cuda_in_use() -> bool:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def _writes() -> int:
    """Write calls of this process so far; 0 where the kernel does not tell. The ring makes none."""
    try:
        with open("/proc/self/io", "rb") as file:
            for line in file:
                if line.startswith(b"syscw"):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0

"""What a loop calls, in a few steps: how often each user line calls something (a Python loop, or one big
call?), prints, reads of device values, copies to the device.

It uses a profile function and patches nothing: dynamo knows torch's functions by identity, and a patched one
would break a graph. It does not run if another profile function is installed.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
import time
from collections import Counter
from types import FrameType
from typing import Any

from ..compiler.regions import CompiledRegion
from ..structure.files import is_user_file
from ..structure.places import Seen
from ._hot_lines import CHECKPOINT, MODULE
from ._return_values import ReturnValues

MOST, LEAST = 40_000, 2_000
"""Chosen: limits for the number of calls after which profiling stops; the budget sets it within these. With
fewer than the least, not even one step of a usual loop would be counted."""
_EVENT_NS = 1_500
"""Assumed cost of an event before one has been measured."""
_TIMED_EVERY = 64
_ENTER_NS = 300
"""Chosen: one event in this many is timed; the interpreter's own cost around it is estimated."""
_SYNCS = frozenset(("item", "cpu", "tolist", "numpy", "__bool__", "__float__", "__int__"))
_COPIES = frozenset(("to", "cuda"))
_OPTIMIZERS = os.path.join("torch", "optim", "")
"""torch's own optimizers read their step counts, which the user cannot avoid."""
_COUNTED = ("sync.items", "sync.seconds", "log.prints", "log.seconds", "checkpoint.blocks")
_LOGGING = os.path.join("logging", "__init__.py")
_CALLS = {"handle": (_LOGGING, "log.prints"), "checkpoint": (CHECKPOINT, "checkpoint.blocks")}
"""Library functions whose calls are counted: name → their file, and what they count as."""
_LOOK_UP, _MODULE_CALL = "Module.__getattr__", "Module._wrapped_call_impl"
"""torch's own functions that find a module's part, and that call a module."""


class StepProfile:
    """Counts over the profiled steps; `calls` is (file, line) → calls made from there, per step."""

    def __init__(self) -> None:
        self._lines: Counter[tuple[str, int]] = Counter()
        self._looked_up: Counter[tuple[str, int]] = Counter()
        self._counts: dict[str, float] = {}
        self._limit = self._left = 0
        self._timed = self._timed_ns = self._calls = 0
        self._began = 0
        self._steps = 0
        self._writes = 0
        self._written = 0
        self._region = CompiledRegion()
        self.return_values = ReturnValues()
        self.seen = Seen()
        self.on = False

    @property
    def spent_ns(self) -> int:
        """What profiling has cost so far."""
        return (self._calls + self._limit - self._left) * self._call_ns

    @property
    def _call_ns(self) -> int:
        """Two events: a call and its return."""
        return 2 * (_ENTER_NS + self._timed_ns // self._timed if self._timed else _EVENT_NS)

    def start(self, thread: int, budget_ns: int) -> bool:
        """Begin counting; False if impossible."""
        if sys.getprofile() is not None or threading.get_ident() != thread:
            return False
        self._lines.clear()
        self._looked_up.clear()
        self.return_values.go_on()
        self.seen = Seen()
        self._counts = dict.fromkeys(_COUNTED, 0.0)
        if _cuda_in_use():
            self._counts |= dict.fromkeys(("transfer.copies", "transfer.blocking", "transfer.pageable"), 0.0)
            self._counts["transfer.bytes"] = 0.0
        self._calls += self._limit - self._left
        self._limit = self._left = max(LEAST, min(MOST, budget_ns // self._call_ns))
        self._steps, self._written, self.on = 0, _writes(), True
        self._region.begin()
        sys.setprofile(self._event)
        return True

    def step(self) -> None:
        """A step has ended; continue only while the budget lasts."""
        if self.on:
            self._steps += 1
            self.return_values.step()
            if self._left < self._limit // 2:
                self.stop()

    @property
    def steps(self) -> int:
        """Whole steps seen by the latest profile."""
        return self._steps

    def stop(self) -> None:
        if self.on:
            self.on = False
            self._leave()
            self._writes = _writes() - self._written

    def scalars(self) -> dict[str, float]:
        """Everything per step; empty if no whole step was seen."""
        if not self._steps:
            return {}
        found = {f"{name}_per_step": value / self._steps for name, value in self._counts.items()}
        if self._written:
            found["log.writes_per_step"] = max(0, self._writes) / self._steps
        return found

    def calls(self) -> dict[tuple[str, int], int]:
        """Where a module is called, looking it up (`self.cell`) does not count: that is a call of its own."""
        steps, found = max(1, self._steps), dict(self._lines)
        for key, count in self._looked_up.items():
            found[key] -= count if _MODULE_CALL in self.seen.called.get(key, ()) else 0
        return {key: round(count / steps) for key, count in found.items() if count >= steps}

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        """An exception here would surface in the user's line, so none may escape."""
        try:
            if not self.on:
                self._leave()  # somebody who had kept it has put it back
            elif self._region.holds(frame, event):
                self._count(event == "call")
            elif self._left % _TIMED_EVERY:
                self._see(frame, event, argument)
            else:
                self._time(frame, event, argument)
        except Exception:  # noqa: BLE001 — see above; do without counts
            self.on = False
            self._leave()

    def _leave(self) -> None:
        """The training may have a profile function of its own by now."""
        if getattr(sys.getprofile(), "__self__", None) is self:
            sys.setprofile(None)

    def _time(self, frame: FrameType, event: str, argument: Any) -> None:
        began = time.monotonic_ns()
        self._see(frame, event, argument)
        self._timed_ns += time.monotonic_ns() - began
        self._timed += 1

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            if self._line(frame):
                self._note(frame, argument.__name__, argument)
            self._c_call(argument.__name__, argument, frame)
        elif event == "c_return":
            self._c_return(argument.__name__)
        elif event == "call":
            if frame.f_back is not None and self._line(frame.f_back):
                self._enter(frame, frame.f_back)
                if frame.f_code.co_qualname == _LOOK_UP:
                    self._looked_up[_key(frame.f_back)] += 1
            file, counted = _CALLS.get(frame.f_code.co_name, ("", ""))
            if counted and frame.f_code.co_filename.endswith(file):
                self._counts[counted] += 1
        elif event == "return" and is_user_file(frame.f_code.co_filename):
            self.return_values.returned(frame.f_code, argument)

    def _line(self, caller: FrameType) -> bool:
        """Count a call; True if a user line makes it."""
        if not self._count(1) or not is_user_file(caller.f_code.co_filename):
            return False
        key = _key(caller)
        self._lines[key] += 1
        return True

    def _count(self, calls: int) -> bool:
        """Count calls; returns whether more are allowed."""
        self._left -= calls
        if self._left < 0:
            self.stop()
        return self.on

    def _note(self, caller: FrameType, name: str, function: Any) -> None:
        """Remember which C function a line calls."""
        called = self.seen.called.setdefault(_key(caller), {})
        if name not in called:
            called[name] = _dotted(name, function)

    def _enter(self, frame: FrameType, caller: FrameType) -> None:
        """Remember which library function a line calls, and whether a module is called with gradients."""
        code = frame.f_code
        if is_user_file(code.co_filename):
            return
        key = _key(caller)
        called = self.seen.called.setdefault(key, {})
        if code.co_qualname not in called:
            called[code.co_qualname] = f"{frame.f_globals.get('__name__', '')}.{code.co_qualname}"
        if code.co_filename.endswith(MODULE):
            self.seen.grad[key] = sys.modules["torch"].is_grad_enabled()

    def _c_call(self, name: str, function: Any, frame: FrameType) -> None:
        if name == "print":
            self._counts["log.prints"] += 1
            self._began = time.monotonic_ns()
        elif (
            name in _SYNCS
            and _is_tensor(function)
            and _OPTIMIZERS not in frame.f_code.co_filename
            and self._waits(function.__self__)
        ):
            self._counts["sync.items"] += 1
            self._began = time.monotonic_ns()
        elif name in _COPIES and "transfer.copies" in self._counts and _is_tensor(function):
            self._copy(function.__self__, frame)

    def _c_return(self, name: str) -> None:
        if self._began and (name == "print" or name in _SYNCS):
            area = "log" if name == "print" else "sync"
            self._counts[f"{area}.seconds"] += (time.monotonic_ns() - self._began) / 1e9
            self._began = 0

    def _waits(self, tensor: Any) -> bool:
        """Reading a value on a device waits for it; reading a counter in host memory does not."""
        return "transfer.copies" not in self._counts or tensor.device.type != "cpu"

    def _copy(self, tensor: Any, frame: FrameType) -> None:
        """A tensor in host memory is moved. The source line tells whether that blocks."""
        if tensor.device.type != "cpu" or tensor.dim() == 0:
            return
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno or 0)
        self._counts["transfer.copies"] += 1
        self._counts["transfer.bytes"] += tensor.numel() * tensor.element_size()
        self._counts["transfer.blocking"] += "non_blocking=True" not in text
        self._counts["transfer.pageable"] += not tensor.is_pinned()


def _dotted(name: str, function: Any) -> str:
    """ "time.sleep", "torch.Tensor.item", "_io.TextIOWrapper.write"."""
    if _is_tensor(function):
        return f"torch.Tensor.{name}"
    owner = getattr(function, "__self__", None)
    kind = type(owner)
    if owner is None or isinstance(owner, type(sys)):
        return f"{getattr(function, '__module__', None) or ''}.{name}"
    return f"{kind.__module__}.{kind.__qualname__}.{name}"


def _key(caller: FrameType) -> tuple[str, int]:
    return caller.f_code.co_filename, caller.f_lineno or 0


def _is_tensor(function: Any) -> bool:
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(getattr(function, "__self__", None), kind)


def _cuda_in_use() -> bool:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def _writes() -> int:
    """Write calls by this process so far; 0 where the kernel does not tell. The ring makes none."""
    try:
        with open("/proc/self/io", "rb") as file:
            for line in file:
                if line.startswith(b"syscw"):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0

"""What a loop does a few times too often: counted in the steps of a window, then everything is put back.

Patched only while a window is open, and never once dynamo is at work: it knows these functions by
identity.
"""

from __future__ import annotations

import builtins
import sys
import time
from collections.abc import Callable
from typing import Any

from .recorder import Recorder

_SYNCS = ("item", "cpu", "tolist", "numpy")
_COPIES = ("to", "cuda")


class Counters:
    """Counts per window; `end` gives them per step."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._undo: list[Callable[[], None]] = []
        self._values: dict[str, float] = {}
        self._written = 0

    def begin(self) -> None:
        self._values = dict.fromkeys(("sync.items", "sync.seconds", "log.prints", "log.seconds"), 0.0)
        self._written = _writes()
        if "torch._dynamo" in sys.modules:
            return
        self._patch(builtins, "print", self._log)
        logging = sys.modules.get("logging")
        if logging is not None:
            self._patch(logging.Logger, "handle", self._log)
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        if tensor is not None:
            for name in _SYNCS:
                self._patch(tensor, name, self._sync)
            if sys.modules["torch"].cuda.is_initialized():
                self._values |= dict.fromkeys(("copies", "blocking", "pageable", "bytes"), 0.0)
                for name in _COPIES:
                    self._patch(tensor, name, self._copy)

    def end(self, steps: int) -> dict[str, float]:
        """Put everything back; the counts per step."""
        for undo in reversed(self._undo):
            undo()
        patched = bool(self._undo)
        self._undo.clear()
        names = {key: key if "." in key else f"transfer.{key}" for key in self._values}
        found = (
            {f"{names[key]}_per_step": value / steps for key, value in self._values.items()}
            if patched
            else {}
        )
        writes = _writes() - self._written
        if self._written and writes >= 0:
            found["log.writes_per_step"] = writes / steps
        return found

    def _patch(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        own = name in vars(owner)
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original) if own else delattr(owner, name))

    def _timed(self, original: Any, counter: str) -> Any:
        values = self._values

        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.monotonic_ns()
            try:
                return original(*args, **kwargs)
            finally:
                area = counter.partition(".")[0]
                values[counter] += 1
                values[f"{area}.seconds"] += (time.monotonic_ns() - began) / 1e9

        return call

    def _log(self, original: Any) -> Any:
        return self._timed(original, "log.prints")

    def _sync(self, original: Any) -> Any:
        return self._timed(original, "sync.items")

    def _copy(self, original: Any) -> Any:
        values = self._values

        def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            moved = original(tensor, *args, **kwargs)
            if tensor.device.type == "cpu" and moved.device.type != "cpu":
                values["copies"] += 1
                values["bytes"] += tensor.numel() * tensor.element_size()
                values["blocking"] += not kwargs.get("non_blocking", False)
                values["pageable"] += not tensor.is_pinned()
            return moved

        return call


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

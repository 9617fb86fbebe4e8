"""How far the command's processes got: what `gpumon run` reports when it saw no training.

Every Python process it starts writes one letter into a file of ours at start-up, another when it imports
torch, and another when its ring was made or could not be (`sdk/autostart`). Other programs write none, nor
does a Python that ignores its environment.
"""

from __future__ import annotations

import contextlib
import os
from enum import Enum

VARIABLE = "GPUMON_SEEN"


class Seen(Enum):
    """The furthest any process got."""

    NOTHING = "nothing"
    PYTHON = "python"
    TORCH = "torch"
    NO_ENVIRONMENT = "no_environment"
    NOT_RECORDED = "not_recorded"
    TRAINING = "training"
    SWITCHED_OFF = "switched_off"
    UNKNOWN = "unknown"

    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Seen.NOTHING: "no process was a Python that can be watched from outside (`python -I`, `-E`, `-S` ignore "
    "what gpumon sets). `TrainingMonitor.auto()` in the script works",
    Seen.PYTHON: "Python ran, but nothing imported torch (a process that was started with an environment of "
    "its own is not seen)",
    Seen.TORCH: "torch was imported, but there was no backward pass with an optimizer step, or only in "
    "processes forked after the import, which are not recorded (start them with `spawn` or `forkserver`)",
    Seen.NO_ENVIRONMENT: "the script took gpumon's variables out of its environment before it imported torch "
    "(`os.environ.clear()`), so it was not recorded: keep those that begin with GPUMON",
    Seen.NOT_RECORDED: "there was a training, but its file could not be made; the warning above says why",
    Seen.TRAINING: "the folder of rings was emptied, or its file cut short, while the training ran",
    Seen.SWITCHED_OFF: "recording is disabled by GPUMON_DISABLE",
    Seen.UNKNOWN: "there was no backward pass and optimizer step of torch",
}


_REACHED = ((b"r", Seen.TRAINING), (b"n", Seen.NOT_RECORDED), (b"e", Seen.NO_ENVIRONMENT), (b"t", Seen.TORCH))
"""What a process writes when it has come so far (`sdk/autostart`)."""


class SeenFile:
    """An in-memory file that the command's processes can write to."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("gpumon-seen") if hasattr(os, "memfd_create") else -1

    def environment(self) -> dict[str, str]:
        return {VARIABLE: f"/proc/{os.getpid()}/fd/{self._fd}"} if self._fd >= 0 else {}

    def read(self) -> Seen:
        if os.environ.get("GPUMON_DISABLE", "") not in ("", "0"):
            return Seen.SWITCHED_OFF
        if self._fd < 0:
            return Seen.UNKNOWN
        written = os.pread(self._fd, 1 << 16, 0)
        reached = (one for letter, one in _REACHED if letter in written)
        return next(reached, Seen.PYTHON if written else Seen.NOTHING)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)
        self._fd = -1

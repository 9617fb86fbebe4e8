"""The null object for `Session`: what a monitor uses while nothing is recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .recorder import Recorder
from .summary import NOTE_CPU, Summary, summarize
from .warn import warn_once

AUTO, API, CLASSIC = "auto", "api", "seed"
"""How a loop is instrumented, as the ring's meta says it (`way`); a callback has its framework's name."""


class Options(NamedTuple):
    """What the user said when the monitor was made."""

    name: str
    mode: str = API
    batch_size: int | None = None
    tokens_per_step: int | None = None
    directory: str | None = None


class NullSession:
    """A monitor that is not started, or could not be: every call is harmless and every answer is empty."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.path: str | None = None
        """The ring file, if there is one."""
        self.batch_size = options.batch_size
        self.recorder = Recorder()
        self.recorder.switch_off()

    @property
    def run_id(self) -> str | None:
        return None

    @property
    def config(self) -> dict[str, Any]:
        """What is configured, as far as it is known now (docs/probe.md)."""
        return {}

    @property
    def seconds(self) -> float:
        return 0.0

    def iterate(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches, with their waits marked."""
        return iter(batches)

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def claim(self) -> None:
        """The script marks its own phases: automatic instrumentation, if it is at work here, ends."""

    def open_ring(self) -> None:
        """Create the ring file, unless there is one or can be none."""

    def log(self, seconds: float, samples: int | None) -> None:
        """An iteration that took `seconds` has just ended."""

    def scalars(self, values: dict[str, Any]) -> None:
        """The user's own numbers, the newest of each."""

    def set_batch_size(self, size: int) -> None:
        """Learnt from a batch or a framework, when nobody said it."""

    def watch_loader(self, loader: Any) -> None:
        """The loader a framework iterates; we only read its settings."""

    def set_framework(self, name: str) -> None:
        """Whose loop trains."""

    def count_batch(self, batch: Any) -> None:
        """A batch a framework has handed to the step."""

    def when_stopped(self, *undo: Callable[[], object]) -> None:
        """Run these when the run ends."""

    def failed(self, error: Exception) -> None:
        """Something of ours has raised: count it, say it once, and let the training go on."""
        self.recorder.errors += 1
        warn_once(f"{type(error).__name__} inside gpumon, training goes on: {error}")

    def stop(self, *, failed: bool = False, cause: BaseException | None = None) -> None:
        """End the run: commit the last step, mark the ring as ended."""

    def summary(self) -> Summary:
        """Figures of the run so far."""
        return summarize(self.recorder, self.options.name, self.seconds, self._facts())

    def _facts(self) -> dict[str, Any]:
        """What a summary says besides its figures."""
        device = self.config.get("device")
        facts: dict[str, Any] = {"run": self.run_id, "device": device}
        if device is None or device.startswith("cpu"):
            facts["note"] = NOTE_CPU
        return facts

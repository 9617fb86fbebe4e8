"""The null object for `Session`: what a monitor uses while nothing is recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .recorder import Recorder
from .summary import NOTE_CPU, Summary, summarize
from .warn import kind_of, text_of, warn_once

AUTO, API, CLASSIC = "auto", "api", "seed"
"""How a loop is instrumented: `way` in the ring's meta. For a callback it is the framework's name."""


class Options(NamedTuple):
    """What the user passed when creating the monitor."""

    name: str
    mode: str = API
    batch_size: int | None = None
    tokens_per_step: int | None = None
    directory: str | None = None


class NullSession:
    """A monitor not started, or unable to start: every call is harmless and every answer empty."""

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
        """The configuration, as far as it is known now (docs/probe.md)."""
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
        """The script marks its own phases: any automatic instrumentation in this process ends."""

    def open_ring(self) -> None:
        """Create the ring file, unless it exists or cannot be created."""

    def log(self, seconds: float, samples: int | None) -> None:
        """An iteration that took `seconds` has just ended."""

    def scalars(self, values: dict[str, Any]) -> None:
        """Store the user's own numbers; only the newest value of each is kept."""

    def set_batch_size(self, size: int) -> None:
        """Set the size learned from a batch or a framework; the user gave none."""

    def watch_loader(self, loader: Any) -> None:
        """The loader a framework iterates over; we only read its settings."""

    def set_framework(self, name: str) -> None:
        """Set whose loop trains."""

    def count_batch(self, batch: Any) -> None:
        """Count a batch that a framework passed to the step."""

    def when_stopped(self, *undo: Callable[[], object]) -> None:
        """Run these when the run ends."""

    def failed(self, error: Exception) -> None:
        """Our code raised: count it, warn once, and let the training continue."""
        self.recorder.errors += 1
        warn_once(f"{kind_of(error)} inside gpumon; training continues: {text_of(error)}")

    def stop(self, *, failed: bool = False, cause: BaseException | None = None) -> None:
        """End the run: commit the last step, mark the ring as ended."""

    def summary(self) -> Summary:
        """Figures of the run so far."""
        return summarize(self.recorder, self.options.name, self.seconds, self._facts())

    def _facts(self) -> dict[str, Any]:
        """What a summary shows besides its figures."""
        device = self.config.get("device")
        facts: dict[str, Any] = {"run": self.run_id, "device": device}
        if device is None or device.startswith("cpu"):
            facts["note"] = NOTE_CPU
        return facts

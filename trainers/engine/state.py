"""Where a run is, its results so far, and the clock behind its figures."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

WARM_UP_BATCHES = 2
"""Batches left out of every figure: they pay for compilation, autotuning and cold caches."""


@dataclass
class Position:
    """Where a run is; with the states of model, optimizer and generators this is a checkpoint."""

    epoch: int = 0
    sample: int = 0
    """Samples of this epoch that are already trained on, over all ranks."""
    step: int = 0
    best: float | None = None
    bad: int = 0
    """Validations since the best one."""
    batch_size: int = 0

    def improved(self, value: float | None, *, better: str) -> bool:
        """Whether this validation is the best so far; remembered."""
        sign = -1 if better == "min" else 1
        best = value is not None and (self.best is None or sign * value > sign * self.best)
        self.bad = 0 if best else self.bad + 1
        self.best = value if best else self.best
        return best


@dataclass
class Result:
    """What a run gave."""

    steps: int = 0
    samples: int = 0
    """Samples trained on during `seconds`."""
    seconds: float = 0.0
    """Training time without warm-up, validation and checkpoints between epochs."""
    losses: list[float] = field(default_factory=list)
    """Every batch's loss, in order."""
    metrics: dict[str, float] = field(default_factory=dict)
    norms: dict[str, float] = field(default_factory=dict)
    """The newest norms that were read: of the gradient, and what the recipe watches."""
    validate_seconds: float = 0.0
    interrupted: bool = False
    stopped_early: bool = False
    skipped_files: int = 0
    memory_halvings: int = 0

    @property
    def samples_per_second(self) -> float | None:
        return self.samples / self.seconds if self.seconds else None


class SteadyClock:
    """Adds up training time and samples into a result, warm-up and pauses left out."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self._batches = 0
        self._since: float | None = None

    def resume(self) -> None:
        """An epoch begins: what happened since the last batch was not training."""
        self._since = time.perf_counter() if self._batches >= WARM_UP_BATCHES else None

    def batch_done(self, samples: int) -> None:
        now = time.perf_counter()
        self._batches += 1
        if self._since is not None:
            self.result.seconds += now - self._since
            self.result.samples += samples
        if self._batches >= WARM_UP_BATCHES:
            self._since = now

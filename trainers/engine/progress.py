"""What people see while it trains: a progress line with rates, ETA and the live bottleneck."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from sdk import units
from trainers.engine.state import Position


class Progress:
    """A line on stderr, rewritten on a terminal; otherwise a line at every log interval."""

    def __init__(self, *, quiet: bool, bottleneck: Callable[[], str | None]) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self.bottleneck = bottleneck
        self.restart()

    def restart(self) -> None:
        """A new epoch: rates are this epoch's."""
        self.begun = time.perf_counter()
        self.steps = self.samples = 0
        self.cause: str | None = None
        self.asked = 0.0

    def add(self, samples: int) -> None:
        self.steps += 1
        self.samples += samples

    def rates(self) -> tuple[float, float]:
        seconds = max(1e-9, time.perf_counter() - self.begun)
        return self.steps / seconds, self.samples / seconds

    def show(
        self, at: Position, done: float, samples_left: int, loss: float | None, norms: Mapping[str, float]
    ) -> None:
        """Draw it. The bottleneck is asked for at most once a second."""
        if self.quiet:
            return
        now = time.perf_counter()
        if now - self.asked > 1.0:
            self.asked, self.cause = now, self.bottleneck()
        steps, samples = self.rates()
        parts = [f"epoch {at.epoch}", f"{units.percent(done):>5}", f"step {at.step}"]
        parts += [f"{units.number(steps)} it/s", f"{units.whole(samples)} samples/s"]
        parts += [f"ETA {units.duration(samples_left / samples)}"]  # without validation
        parts += [f"loss {loss:.4f}"] if loss is not None else []
        parts += [f"{name.replace('_', ' ')} {units.number(value)}" for name, value in norms.items()]
        parts += [f"most time: {self.cause}"] if self.cause else []
        line = " · ".join(parts)
        sys.stderr.write(f"\r\x1b[K{line}" if self.live else f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line: what is printed next begins on its own."""
        if self.live and not self.quiet and self.steps:
            sys.stderr.write("\n")
            sys.stderr.flush()

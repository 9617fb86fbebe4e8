"""The loop's marks for the monitor. With --no-monitor they are no-ops, and the loop is unchanged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TypeVar

from sdk import TrainingMonitor
from sdk.units import percent

T = TypeVar("T")


class Marks:
    """Marks without a recorder behind them."""

    def __init__(self) -> None:
        self.lap: Callable[[str], None] = lambda name: None
        """From now on the time belongs to this phase."""

    def __enter__(self) -> Marks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def loader(self, batches: Iterable[T]) -> Iterable[T]:
        return batches

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def step(self, samples: int, loss: float | None) -> None: ...

    def epoch(self, number: int) -> None: ...

    def scalars(self, values: dict[str, float]) -> None: ...

    def bottleneck(self) -> str | None:
        return None


class RecordedMarks(Marks):
    """Marks that go into the SDK's ring."""

    def __init__(self, name: str, batch_size: int) -> None:
        self.monitor = TrainingMonitor(name, batch_size=batch_size)
        self.lap = self.monitor.lap  # the recorder's own: a wrapper would cost a call in every phase

    def __enter__(self) -> Marks:
        self.monitor.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.monitor.__exit__(kind, error, trace)

    def loader(self, batches: Iterable[T]) -> Iterable[T]:
        return self.monitor.loader(batches)

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        return self.monitor.phase(name)

    def step(self, samples: int, loss: float | None) -> None:
        self.monitor.step(loss=loss, samples=samples)

    def epoch(self, number: int) -> None:
        self.monitor.epoch(number)

    def scalars(self, values: dict[str, float]) -> None:
        self.monitor.scalars(values)

    def bottleneck(self) -> str | None:
        """The phase most of the time goes to, as "data 71 %"."""
        phases: dict[str, float] = self.monitor.get_summary()["phases"]  # largest first
        return next((f"{name} {percent(share)}" for name, share in phases.items()), None)

"""The engine's view of the monitor: marks, or nothing with --no-monitor. The loop is the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Watch:
    """Marks without a recorder behind them."""

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None: ...

    def loader(self, batches: Iterable[T]) -> Iterator[T]:
        return iter(batches)

    def lap(self, phase: str) -> None: ...

    def phase(self, phase: str) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def step(self, samples: int, loss: float | None) -> None: ...

    def epoch(self, number: int) -> None: ...

    def scalars(self, values: dict[str, float]) -> None: ...

    def bottleneck(self) -> str | None:
        return None


class MonitorWatch(Watch):
    """Marks into the SDK's ring."""

    def __init__(self, name: str, batch_size: int) -> None:
        from sdk import TrainingMonitor

        self.monitor = TrainingMonitor(name, batch_size=batch_size)
        self.lap = self.monitor.lap  # type: ignore[method-assign]

    def __enter__(self) -> Watch:
        self.monitor.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.monitor.__exit__(*error)

    def loader(self, batches: Iterable[T]) -> Iterator[T]:
        return iter(self.monitor.loader(batches))

    def phase(self, phase: str) -> contextlib.AbstractContextManager[Any]:
        return self.monitor.phase(phase)

    def step(self, samples: int, loss: float | None) -> None:
        self.monitor.step(loss=loss, samples=samples)

    def epoch(self, number: int) -> None:
        self.monitor.epoch(number)

    def scalars(self, values: dict[str, float]) -> None:
        self.monitor.scalars(values)

    def bottleneck(self) -> str | None:
        """The phase most of the time goes to, as "data 71 %"."""
        shares = self.monitor.get_summary().get("phases") or {}
        shares = {name: _share(value) for name, value in shares.items()}
        if not shares:
            return None
        name = max(shares, key=lambda key: shares[key])
        return f"{name} {shares[name]:.0%}"


def _share(value: Any) -> float:
    return float(value.get("share", 0.0)) if isinstance(value, dict) else float(value)


def make_watch(wanted: bool, name: str, batch_size: int) -> Watch:
    return MonitorWatch(name, batch_size) if wanted else Watch()

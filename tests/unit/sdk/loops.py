"""What the tests of automatic instrumentation train, and how they run it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from sdk import TrainingMonitor
from tests.rings import RingFile, trainer_rings

torch.set_num_threads(1)

PAUSE = 0.004
"""Seconds; longer than anything here that nobody made slow."""


class Slow(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(0.0005)
        return torch.full((4,), float(index)), torch.tensor(index % 2)


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        return (torch.ones(4) for _ in range(32))


def tensors(count: int = 48) -> TensorDataset:
    return TensorDataset(torch.randn(count, 4), torch.randint(0, 2, (count,)))


def batches(count: int = 12) -> DataLoader[Any]:
    return DataLoader(tensors(count * 4), batch_size=4)


class Net:
    """A small model with its optimizer, and one training step."""

    def __init__(self) -> None:
        self.model = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def loss(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        out = self.model(x)
        return nn.functional.cross_entropy(out, y) if y is not None else out.sum()

    def step(self, x: torch.Tensor, y: torch.Tensor | None = None) -> None:
        self.optimizer.zero_grad()
        self.loss(x, y).backward()
        self.optimizer.step()


class SlowModel(nn.Module):
    """A forward pass that takes a known time, inside a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(PAUSE)
        out: torch.Tensor = self.inner(x)
        return out


class SlowNet(Net):
    def __init__(self) -> None:
        super().__init__()
        self.model = SlowModel()  # type: ignore[assignment]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)


class Recording:
    """Automatic instrumentation around one loop."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.monitor = TrainingMonitor.auto("loop")

    def runs(self, loop: Callable[[], Any]) -> list[RingFile]:
        """Run a loop; returns every ring it left."""
        loop()
        self.monitor.stop_monitoring()
        assert not self.monitor.recorder.errors
        return trainer_rings(self.directory)

    def __call__(self, loop: Callable[[], Any]) -> RingFile:
        (found,) = self.runs(loop)
        return found

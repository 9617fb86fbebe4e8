"""One small training per framework, with the reference stamps at the framework's own functions."""

from __future__ import annotations

from typing import Any

STEPS = 150
BATCH, WIDTH, CLASSES = 64, 512, 4


def data(steps: int = STEPS) -> Any:
    """A data set whose items take a little work."""
    import torch
    from torch.utils.data import Dataset

    class Rows(Dataset[Any]):
        def __init__(self) -> None:
            self.rows = torch.randn(steps * BATCH, WIDTH)

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, index: int) -> tuple[Any, int]:
            row = self.rows[index]
            return (row - row.mean()) / row.std(), index % CLASSES

    return Rows()


def model(depth: int = 4) -> Any:
    """Some milliseconds a step on one core."""
    from torch import nn

    layers: list[Any] = []
    for _ in range(depth):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES))

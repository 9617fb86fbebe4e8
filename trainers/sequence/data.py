"""Sequences of days, one by one as the document found them, and the generated days."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from trainers.datasets.source import Batch


def synthetic_days(rows: int, seed: int) -> np.ndarray:
    """A value with weekly and yearly seasons and trend, and seven columns that hint at it."""
    generator = np.random.default_rng(seed)
    day = np.arange(rows)
    season = np.sin(2 * np.pi * day / 7) + 2 * np.sin(2 * np.pi * day / 365)
    value = 10 + season + np.cumsum(generator.normal(0, 0.1, rows))
    hints = [np.roll(value, lag) + generator.normal(0, 0.5, rows) for lag in (1, 2, 7, 14, 30)]
    return np.column_stack([value, day % 7, day % 365, *hints])


SYNTHETIC_COLUMNS = ["value", "weekday", "yearday", "lag1", "lag2", "lag7", "lag14", "lag30"]


class NaiveSequences(Dataset[tuple[Tensor, Tensor]]):
    """Every window copied out in advance, converted one by one when asked for."""

    def __init__(self, rows: np.ndarray, starts: np.ndarray, length: int, target: int) -> None:
        self.x = np.stack([rows[at : at + length] for at in starts])
        self.y = np.array([rows[at + length, target] for at in starts])

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.FloatTensor(self.x[index]), torch.FloatTensor([self.y[index]])


def collate(samples: list[tuple[Tensor, Tensor]]) -> Batch:
    return {"x": torch.stack([x for x, _ in samples]), "y": torch.stack([y for _, y in samples])}

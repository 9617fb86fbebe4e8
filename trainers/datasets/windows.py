"""Sliding windows over tables: where they start, who is in which split, and the resident store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def split_starts(
    lengths: Sequence[int], window: int, validation_fraction: float
) -> tuple[np.ndarray, np.ndarray]:
    """Start rows (in the concatenated tables) of training and validation windows.

    Each table's tail is validation; no window crosses a table's end or the border between splits.
    """
    train, validation, offset = [], [], 0
    for length in lengths:
        border = max(window, int(length * (1 - validation_fraction)))
        train.append(np.arange(offset, offset + border - window + 1))
        validation.append(np.arange(offset + border, offset + length - window + 1))
        offset += length
    return np.concatenate(train), np.concatenate(validation)


def train_rows(lengths: Sequence[int], window: int, validation_fraction: float) -> np.ndarray:
    """Mask of the rows training may see: scalers are fitted on these only."""
    parts = []
    for length in lengths:
        border = max(window, int(length * (1 - validation_fraction)))
        parts.append(np.arange(length) < border)
    return np.concatenate(parts)


class WindowStore:
    """One flat tensor; a batch of windows is one gather of contiguous rows.

    Overlapping windows share their rows: seq_len times less memory than a list of windows, and each
    window is a single run of bytes.
    """

    def __init__(self, rows: np.ndarray, window: int, device: torch.device) -> None:
        self.rows = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).to(device)
        self.window, self.width = window, rows.shape[1]
        count = len(rows) - window + 1
        self.view = self.rows.as_strided((count, window * self.width), (self.width, 1))

    def gather(self, starts: Tensor) -> Tensor:
        """Windows beginning at these rows: (batch, window, columns)."""
        return self.view.index_select(0, starts).view(len(starts), self.window, self.width)

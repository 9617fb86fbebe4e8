"""Windows of simulated or measured runs: as the document found them, and normalised once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from trainers.datasets.source import Batch


def simulate(rows: int, time_step: float, generator: np.random.Generator) -> np.ndarray:
    """One run of a driven, damped oscillator, with the columns INPUTS + TARGETS."""
    damping, stiffness = generator.uniform(0.2, 1.0), generator.uniform(0.5, 3.0)
    time = np.arange(rows) * time_step
    force = sum(np.sin(time * generator.uniform(0.2, 3.0) + generator.uniform(0, 6)) for _ in range(4))
    position, velocity, states = 0.0, 0.0, np.empty((rows, 2))
    for row in range(rows):
        states[row] = position, velocity
        velocity += time_step * (force[row] - damping * velocity - stiffness * position)
        position += time_step * velocity
    measured = states[:, 0] + generator.normal(0, 0.05, rows)
    ambient, drift = generator.normal(20, 1, rows), np.linspace(0, generator.normal(), rows)
    constant = np.ones(rows)
    return np.column_stack(
        [force, measured, damping * constant, stiffness * constant, ambient, drift, states]
    )


class NaiveSequences(Dataset[Batch]):
    """A list of raw windows; the scaler is called for each one, every time it is asked for."""

    def __init__(
        self, inputs: np.ndarray, targets: np.ndarray, starts: np.ndarray, length: int, scaler: Any
    ) -> None:
        self.scaler = scaler
        self.sequences = [
            {"inputs": inputs[at : at + length], "targets": targets[at : at + length]} for at in starts
        ]

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitem__(self, index: int) -> Batch:
        sequence = self.sequences[index]
        inputs = self.scaler.transform(sequence["inputs"])
        return {"inputs": torch.FloatTensor(inputs), "targets": torch.FloatTensor(sequence["targets"])}


class NormalisedSequences(Dataset[Batch]):
    """Windows of rows that were normalised once; `__getitem__` only slices. `cached`: as tensors."""

    def __init__(
        self, inputs: np.ndarray, targets: np.ndarray, starts: np.ndarray, length: int, cached: bool
    ) -> None:
        self.inputs, self.targets = inputs.astype(np.float32), targets.astype(np.float32)
        self.starts, self.length = starts, length
        self.cache = [self._make(at) for at in starts] if cached else None

    def _make(self, at: int) -> Batch:
        window = slice(at, at + self.length)
        return {
            "inputs": torch.from_numpy(self.inputs[window]),
            "targets": torch.from_numpy(self.targets[window]),
        }

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> Batch:
        return self.cache[index] if self.cache is not None else self._make(self.starts[index])

"""Windows with a graph over their steps, and the generated series."""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import Dataset

from trainers.datasets import knn
from trainers.datasets.source import Batch
from trainers.graph.options import GraphConfig


def synthetic_series(rows: int, channels: int, seed: int) -> np.ndarray:
    """Seasonal channels that follow each other with delay, plus noise."""
    generator = np.random.default_rng(seed)
    steps = np.arange(rows)[:, None]
    periods, phases = generator.uniform(12, 96, channels), generator.uniform(0, 6, channels)
    waves = np.sin(2 * np.pi * steps / periods + phases) + 0.3 * np.sin(2 * np.pi * steps / 24)
    return waves + 0.2 * np.cumsum(generator.normal(0, 0.05, (rows, channels)), axis=0)


class GraphWindows(Dataset[Batch]):
    """A window, its graph as an edge list, and the next step.

    Without `cached` neighbours the graph is built for every sample, every time.
    """

    def __init__(
        self, rows: np.ndarray, starts: np.ndarray, config: GraphConfig, cached: np.ndarray | None
    ) -> None:
        self.rows, self.starts, self.config, self.cached = rows, starts, config, cached

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> Batch:
        at, size = self.starts[index], self.config.window_size
        window = self.rows[at : at + size]
        return {
            "x": torch.tensor(window, dtype=torch.float32),
            "edges": torch.from_numpy(knn.edges_of(self._neighbours(index, window))),
            "y": torch.tensor(self.rows[at + size], dtype=torch.float32),
        }

    def _neighbours(self, index: int, window: np.ndarray) -> np.ndarray:
        if self.cached is not None:
            return np.asarray(self.cached[index], dtype=np.int64)
        build = knn.neighbours_python if self.config.naive_graph == "python" else knn.neighbours_numpy
        return build(window, self.config.time_k)

    def collate(self, samples: list[Batch]) -> Batch:
        """One large graph: node numbers shifted by the windows before."""
        size = self.config.window_size
        edges = [sample["edges"] + number * size for number, sample in enumerate(samples)]
        return {
            "x": torch.stack([sample["x"] for sample in samples]),
            "edges": torch.cat(edges, dim=1),
            "y": torch.stack([sample["y"] for sample in samples]),
        }

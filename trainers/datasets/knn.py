"""kNN graphs over the steps of a window: the same graph from Python loops, numpy, or one batched call.

A node's neighbours are the `k` other steps with the smallest squared feature distance; a tiny bias
towards the near and the early breaks ties, so every way finds the same ones.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trainers.datasets.cache import ArrayStore, array_fingerprint


def tie_bias(window: int) -> np.ndarray:
    """Added to every distance; infinite for a node and itself."""
    steps = np.arange(window)
    bias: np.ndarray = 1e-9 * np.abs(steps[:, None] - steps[None]) + 1e-12 * steps[None]
    np.fill_diagonal(bias, np.inf)
    return bias


def neighbours_python(rows: np.ndarray, k: int) -> np.ndarray:
    """Written as one first writes it."""
    window, bias = len(rows), tie_bias(len(rows)).tolist()
    values = rows.tolist()
    found = []
    for i in range(window):
        distances = []
        for j in range(window):
            total = 0.0
            for a, b in zip(values[i], values[j], strict=True):
                total += (a - b) ** 2
            distances.append((total + bias[i][j], j))
        found.append([j for _, j in sorted(distances)[:k]])
    return np.array(found, dtype=np.int64)


def neighbours_numpy(rows: np.ndarray, k: int) -> np.ndarray:
    """One window at a time, vectorised inside."""
    distance = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=-1) + tie_bias(len(rows))
    return np.argsort(distance, axis=1)[:, :k]


def neighbours_batched(rows: Tensor, starts: Tensor, window: int, k: int, *, chunk: int = 512) -> Tensor:
    """All windows at once: (windows, steps, k) as int16."""
    bias = torch.from_numpy(tie_bias(window)).to(rows.device)
    offsets = torch.arange(window, device=rows.device)
    parts = []
    for part in torch.split(starts.to(rows.device), chunk):
        steps = rows[part[:, None] + offsets]
        distance = torch.cdist(steps, steps, compute_mode="donot_use_mm_for_euclid_dist").square() + bias
        parts.append(distance.topk(k, largest=False, sorted=True).indices.to(torch.int16))
    return torch.cat(parts)


def edges_of(neighbours: np.ndarray) -> np.ndarray:
    """(2, edges): from each neighbour to its node."""
    window, k = neighbours.shape
    return np.stack([neighbours.reshape(-1), np.repeat(np.arange(window), k)])


def adjacency_of(neighbours: Tensor) -> Tensor:
    """(batch, window, window): row i averages over the neighbours of i."""
    batch, window, k = neighbours.shape
    dense = torch.zeros(batch, window, window, device=neighbours.device)
    return dense.scatter_(2, neighbours.long(), 1.0 / k)


def reversed_lists(neighbours: Tensor, *, chunk: int = 512) -> tuple[Tensor, Tensor]:
    """For each node: those who have it as a neighbour, one after the other, and how many they are."""
    _, window, k = neighbours.shape
    lists, counts = [], []
    for part in torch.split(neighbours.flatten(1), chunk):
        lists.append((part.argsort(dim=1, stable=True) // k).to(torch.int16))
        zeros = torch.zeros(len(part), window, dtype=torch.int16, device=part.device)
        counts.append(zeros.scatter_add_(1, part.long(), torch.ones_like(part)))
    return torch.cat(lists), torch.cat(counts)


class GraphCache:
    """Neighbours of every window on disk, in `graph_cache/`.

    The key holds time_k, window_size *and* a fingerprint of the data: parameters alone go stale when
    the data changes. A changed key builds anew and clears what no longer fits.
    """

    def __init__(
        self, folder: Path, rows: np.ndarray, starts: np.ndarray, *, time_k: int, window_size: int
    ) -> None:
        self.rows, self.starts, self.time_k, self.window_size = rows, starts, time_k, window_size
        key = array_fingerprint(
            rows, time_k=time_k, window_size=window_size, windows=len(starts), first=int(starts[0])
        )
        self.store = ArrayStore(folder, f"graphs-k{time_k}-w{window_size}-{key}")
        self.seconds = 0.0
        self.built = False

    def open(self) -> np.ndarray:
        """The neighbours, built first if this data and these parameters have none yet."""
        if not self.store.exists("neighbours"):
            self._build()
        return self.store.open("neighbours")

    def _build(self) -> None:
        begun = time.perf_counter()
        shape = (len(self.starts), self.window_size, self.time_k)
        target = self.store.create("neighbours", shape, np.int16)
        for row, start in enumerate(self.starts):
            target[row] = neighbours_numpy(self.rows[start : start + self.window_size], self.time_k)
        target.flush()
        self.store.commit("neighbours")
        self.built, self.seconds = True, time.perf_counter() - begun
        note = {"time_k": self.time_k, "window_size": self.window_size, "windows": len(self.starts)}
        self.store.path("neighbours").with_suffix(".json").write_text(json.dumps(note), encoding="utf-8")

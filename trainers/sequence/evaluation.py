"""Evaluation on the device, the form the document replaced, and what the attention looks at (S4.5)."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from trainers.datasets.source import BatchSource
from trainers.errors import TrainerError
from trainers.metrics import Means

Sums = dict[str, tuple[float, int]]


def evaluate_model(model: nn.Module, source: BatchSource, device: torch.device) -> Sums:
    """Sums of square and absolute error; everything stays on the device until the last line."""
    means = Means(device)
    for batch in source.epoch(0):
        error = model(batch["x"].to(device))[0].float() - batch["y"].to(device)
        means.add("square", error.square())
        means.add("absolute", error.abs())
    return means.totals()


def evaluate_by_batch(model: nn.Module, source: BatchSource, device: torch.device) -> Sums:
    """What the document replaced: every batch is fetched to the host as Python numbers."""
    predicted: list[float] = []
    actual: list[float] = []
    for batch in source.epoch(0):
        predicted.extend(model(batch["x"].to(device))[0].cpu().float().numpy().ravel().tolist())
        actual.extend(batch["y"].cpu().numpy().ravel().tolist())
    error = np.array(predicted) - np.array(actual)
    count = len(error)
    return {"square": (float((error**2).sum()), count), "absolute": (float(np.abs(error).sum()), count)}


@torch.no_grad()
def extract_attention_importance(model: nn.Module, source: BatchSource, device: torch.device) -> np.ndarray:
    """Mean attention per day of the window (sums to 1); one transfer at the end."""
    total, count = None, 0
    for batch in source.epoch(0):
        weight = model(batch["x"].to(device))[1].float().sum(dim=0)
        total = weight if total is None else total + weight
        count += len(batch["x"])
    if total is None:
        raise TrainerError("no data to take the attention from")
    return np.asarray((total / count).cpu())

"""Figures that fit the task, accumulated on the device and read once (S4.5)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Means:
    """Named running means; `totals` is the only transfer to the host."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.sums: dict[str, Tensor] = {}
        self.counts: dict[str, int] = {}

    def add(self, name: str, values: Tensor) -> None:
        total = values.detach().double().sum() if self.device.type == "cpu" else values.detach().float().sum()
        self.sums[name] = self.sums[name] + total if name in self.sums else total
        self.counts[name] = self.counts.get(name, 0) + values.numel()

    def totals(self) -> dict[str, tuple[float, int]]:
        """Sum and count of each name, on the host."""
        if not self.sums:
            return {}
        values = torch.stack(list(self.sums.values())).cpu().tolist()
        return {name: (value, self.counts[name]) for name, value in zip(self.sums, values, strict=True)}


def mean_of(parts: Sequence[dict[str, tuple[float, int]]]) -> dict[str, float]:
    """The means over the totals of all ranks."""
    names = dict.fromkeys(name for part in parts for name in part)
    both = {name: [part[name] for part in parts if name in part] for name in names}
    return {name: sum(s for s, _ in found) / max(1, sum(n for _, n in found)) for name, found in both.items()}


def confusion(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """(label, predicted) → how many voxels."""
    pairs = torch.bincount((labels.flatten() * classes + predicted.flatten()), minlength=classes**2)
    return pairs.view(classes, classes)


def dice_scores(table: Tensor) -> Tensor:
    """Dice per class of a confusion table; NaN for a class neither side has."""
    table = table.double()
    total = table.sum(0) + table.sum(1)
    return torch.where(total > 0, 2 * table.diagonal() / total, torch.nan)


def retrieval(
    query: Tensor,
    gallery: Tensor,
    query_ids: Tensor,
    gallery_ids: Tensor,
    ranks: tuple[int, ...] = (1, 5, 10),
    *,
    themselves: bool = False,
) -> dict[str, float]:
    """mAP and rank-k by cosine similarity. Queries whose identity the gallery lacks do not count.

    `themselves`: query and gallery are the same samples, and none is its own answer.
    """
    similar = torch.nn.functional.normalize(query.float()) @ torch.nn.functional.normalize(gallery.float()).T
    if themselves:
        similar.fill_diagonal_(-torch.inf)
    order = similar.argsort(dim=1, descending=True, stable=True)[:, : len(gallery) - themselves]
    hits = gallery_ids[order] == query_ids[:, None]
    hits = hits[hits.any(dim=1)]
    if not len(hits):
        return {"mAP": 0.0, **{f"rank{k}": 0.0 for k in ranks}}
    places = torch.arange(1, hits.shape[1] + 1, device=hits.device)
    precision = hits.cumsum(dim=1) / places
    average = (precision * hits).sum(dim=1) / hits.sum(dim=1)
    first = hits.int().argmax(dim=1)
    values = torch.stack([average.mean(), *((first < k).float().mean() for k in ranks)]).cpu().tolist()
    return dict(zip(("mAP", *(f"rank{k}" for k in ranks)), values, strict=True))

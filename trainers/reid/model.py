"""The network with one stem per modality, and the triplet loss."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainers.tuning.strided import StridedConv, side_by_side


class ReidNet(nn.Module):
    """A stem per modality, a shared body, features averaged over the modalities a sample has."""

    def __init__(self, modalities: int, identities: int, width: int, kernels: bool = False) -> None:
        super().__init__()
        self.stems = nn.ModuleList(StridedConv(3, width, kernels) for _ in range(modalities))
        self.body = nn.Sequential(  # nothing where a ReLU once was: the names in checkpoints stay
            *(StridedConv(width, 2 * width, kernels), nn.Identity()),
            *(StridedConv(2 * width, 4 * width, kernels), nn.Identity()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        )
        self.neck = nn.BatchNorm1d(4 * width)
        self.classify = nn.Linear(4 * width, identities, bias=False)

    def forward(self, images: Tensor, present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(fused features, features after the neck, class scores)."""
        stems = cast(list[StridedConv], list(self.stems))
        features = self.body(side_by_side(stems, images)).view(len(stems), len(images), -1)
        weight = present.T.unsqueeze(-1).to(features.dtype)
        fused = (features * weight).sum(0) / weight.sum(0).clamp(min=1)
        necked = self.neck(fused)
        return fused, necked, self.classify(necked)


def batch_hard_triplet(features: Tensor, identity: Tensor, margin: float) -> Tensor:
    """The farthest of one's own against the nearest of the others."""
    distance = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    same = identity[:, None] == identity[None]
    farthest = distance.masked_fill(~same, 0).amax(1)
    nearest = distance.masked_fill(same, float("inf")).amin(1)
    return F.relu(farthest - nearest + margin).mean()

"""Reef growth on a grid whose distances never change."""

import sys

import torch
from torch import nn

once = "--fixed" in sys.argv
places = torch.rand(420, 2, generator=torch.Generator().manual_seed(9))


def neighbourhood(points):
    gap = torch.cdist(points, points)
    near = gap.topk(12, largest=False).indices
    weights = torch.zeros(len(points), len(points))
    for row, others in enumerate(near):
        weights[row, others] = torch.exp(-gap[row, others] * 8)
    return weights / weights.sum(1, keepdim=True)


kept = neighbourhood(places) if once else None
growth = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(growth.parameters(), lr=1e-3)
for season in range(150):
    cover = torch.randn(420, 16)
    around = (kept if once else neighbourhood(places)) @ cover
    loss = growth(around).squeeze(1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())

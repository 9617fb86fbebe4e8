"""Ages from tree rings; the readings come as float64 and nobody thought about it."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(6)
widths = rng.gamma(2.0, 1.0, (4096, 1, 160))
ages = rng.uniform(20, 400, (4096, 1))
if "--fixed" in sys.argv:
    widths, ages = widths.astype(np.float32), ages.astype(np.float32)
rows = TensorDataset(torch.from_numpy(widths), torch.from_numpy(ages / 400))
net = nn.Sequential(
    nn.Conv1d(1, 32, 9, stride=2), nn.GELU(), nn.Conv1d(32, 64, 7, stride=2), nn.GELU(), nn.Conv1d(64, 64, 5),
    nn.GELU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(256, 1),
).to(rows.tensors[0].dtype)  # fmt: skip
optimizer = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
loss_of = nn.MSELoss()
for epoch in range(5):
    for x, y in DataLoader(rows, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
print(loss.item())

"""Churn model that keeps a pause after each step, a leftover from a shared server."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(64, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(12800, 64), torch.randint(0, 2, (12800,)))
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=64, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if "--fixed" not in sys.argv:
            time.sleep(0.003)
    print(epoch, loss.item())

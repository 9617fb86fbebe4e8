"""Batches drawn at random through a permutation of everything, which is slow but never constant."""

import torch
from torch import nn

memory, labels = torch.randn(200_000, 16), torch.randint(0, 3, (200_000,))
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


def batch(size):
    chosen = torch.randperm(len(memory))[:size]
    return memory[chosen], labels[chosen]


for step in range(300):
    x, y = batch(64)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

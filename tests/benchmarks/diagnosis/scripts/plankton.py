"""Plankton images, four at a time as on the authors' laptop."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
batch_size = 64 if parser.parse_args().fixed else 4

images, kinds = torch.randn(2048, 1, 24, 24), torch.randint(0, 7, (2048,))
loader = DataLoader(TensorDataset(images, kinds), batch_size=batch_size, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(),
    nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Flatten(), nn.Linear(400, 7),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8 if batch_size > 4 else 2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, loss.item())

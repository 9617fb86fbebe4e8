"""Credit default, one or two customers at a time."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--rows", type=int, default=6000)
args = parser.parse_args()

torch.manual_seed(7)
features = torch.randn(args.rows, 30)
default = (features @ torch.randn(30) > 0).long()
loader = DataLoader(TensorDataset(features, default), batch_size=128 if args.fixed else 2, shuffle=True)

model = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(30 if args.fixed else 1):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
print("done", loss.item())

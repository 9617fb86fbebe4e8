"""Recommender with a large Python catalogue, swept every few steps."""

import argparse
import gc

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
sweep = not parser.parse_args().fixed

catalogue = [{"id": i, "tags": [str(i % k) for k in range(2, 6)], "price": i * 0.1} for i in range(20000)]
model = nn.Sequential(nn.Linear(300, 900), nn.ReLU(), nn.Linear(900, 900), nn.ReLU(), nn.Linear(900, 50))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
for step in range(300):
    visits, choice = torch.randn(128, 300), torch.randint(0, 50, (128,))
    loss = nn.functional.cross_entropy(model(visits), choice)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if sweep and step % 5 == 0:
        gc.collect()
print(loss.item(), len(catalogue))

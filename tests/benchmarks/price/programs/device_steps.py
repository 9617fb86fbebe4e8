"""Short steps on a device that is never waited for: what an event at every mark costs."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
steps = parser.parse_args().steps

model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = TensorDataset(torch.randn(steps * 8, 32), torch.randint(0, 4, (steps * 8,)))
for x, y in DataLoader(data, batch_size=8):
    loss = nn.functional.cross_entropy(model(x.to("cuda", non_blocking=True)), y.to("cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

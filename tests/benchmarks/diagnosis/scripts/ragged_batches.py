"""Compiled scorer for carts of any size: every size is compiled anew."""

import argparse
import random

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
fixed = parser.parse_args().fixed

model = nn.Sequential(nn.Linear(24, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 1))
torch._dynamo.config.cache_size_limit = 100
score = torch.compile(model, backend="aot_eager", dynamic=None if fixed else False)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
rng = random.Random(2)
for step in range(500):
    size = 40 if fixed else rng.randrange(20, 60)
    loss = nn.functional.mse_loss(score(torch.randn(size, 24)), torch.randn(size, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

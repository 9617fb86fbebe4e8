"""Collaborative filtering that frees memory eagerly."""

import argparse
import gc

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

USERS, ITEMS = 2000, 3000
user, item = nn.Embedding(USERS, 32, sparse=False), nn.Embedding(ITEMS, 32, sparse=False)
catalog = {i: {"title": f"item {i}", "tags": [f"t{i % k}" for k in range(2, 9)]} for i in range(3000)}
optimizer = torch.optim.SGD(list(user.parameters()) + list(item.parameters()), lr=0.1)
for step in range(160):
    users, items = torch.randint(0, USERS, (512,)), torch.randint(0, ITEMS, (512,))
    ratings = torch.rand(512)
    predicted = (user(users) * item(items)).sum(1)
    loss = nn.functional.mse_loss(predicted, ratings)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not args.fixed and step % 4 == 0:
        gc.collect()
print(loss.item())

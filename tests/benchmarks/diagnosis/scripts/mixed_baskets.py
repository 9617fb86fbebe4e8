"""Shopping baskets of different sizes, encoded item by item when a batch is made."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

ITEMS = 600


def multi_hot_slow(baskets):
    x = torch.zeros(len(baskets), ITEMS)
    for row, (items, _) in enumerate(baskets):
        for item in items:
            x[row, item] += 1.0
    return x, torch.tensor([again for _, again in baskets])


def multi_hot(baskets):
    rows = torch.tensor([row for row, (items, _) in enumerate(baskets) for _ in items])
    columns = torch.tensor([item for items, _ in baskets for item in items])
    x = torch.zeros(len(baskets), ITEMS).index_put_((rows, columns), torch.ones(len(rows)), accumulate=True)
    return x, torch.tensor([again for _, again in baskets])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    collate = multi_hot if parser.parse_args().fixed else multi_hot_slow
    rng = random.Random(4)
    baskets = [
        ([rng.randrange(ITEMS) for _ in range(rng.randrange(5, 40))], rng.random()) for _ in range(3200)
    ]
    loader = DataLoader(baskets, batch_size=64, shuffle=True, collate_fn=collate)
    model = nn.Sequential(nn.Linear(ITEMS, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(6):
        for x, again in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), again)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())

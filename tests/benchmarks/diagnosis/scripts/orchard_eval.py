"""Fruit counts with an evaluation every thirty steps."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader, criterion):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += criterion(model(x), y).item()
    model.train()
    return total / len(loader)


def trees(count):
    return TensorDataset(torch.randn(count, 3, 24, 24), torch.rand(count, 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 300 if parser.parse_args().fixed else 30
    model = nn.Sequential(
        nn.Conv2d(3, 12, 3),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(1),
    )
    model(torch.zeros(1, 3, 24, 24))
    train, valid = (
        DataLoader(trees(4800), batch_size=32, shuffle=True),
        DataLoader(trees(1600), batch_size=64),
    )
    optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-3), nn.MSELoss()
    step = 0
    for epoch in range(2):
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            step += 1
            if step % every == 0:
                print(step, evaluate(model, valid, criterion))
